//! Conversion of Python arguments: numbers, operands, sizes and dimensions.

use mindtorch_tensor as host;
use mindtorch_tensor::{KeepDims, Scalar};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};

use super::Tensor;
use crate::error::Error;

/// A Python number that keeps its kind: integer, float or boolean.
#[derive(Clone, Copy)]
pub(crate) struct Number(pub(super) Scalar);

impl<'py> FromPyObject<'_, 'py> for Number {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // A zero-dimensional tensor stands for its number, unless that would lose its gradient.
        if let Ok(tensor) = object.cast::<Tensor>()
            && tensor.get().0.rank() == 0
            && !tensor.get().0.requires_grad()
        {
            return Ok(Self(tensor.get().0.item().map_err(Error::from)?));
        }
        match number(object)? {
            Some(number) => Ok(Self(number)),
            None => Err(PyTypeError::new_err(format!(
                "expected a number, found {}",
                object.get_type().name()?
            ))),
        }
    }
}

/// Converts a Python or numpy number of any kind, or returns `None` if the object is not a number.
pub(super) fn number(object: Borrowed<'_, '_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Some(Scalar::Float(value.value())));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Some(Scalar::Bool(value.is_true())));
    }
    if object.is_instance_of::<PyInt>() {
        let value: PyResult<i64> = object.extract();
        return value
            .map(|value| Some(Scalar::Int(value)))
            .map_err(|_| PyValueError::new_err("Overflow when unpacking long long"));
    }
    if object.cast::<Tensor>().is_ok()
        || !object.hasattr("__float__")?
        || object.hasattr("__len__")?
    {
        return Ok(None);
    }
    if object.hasattr("__index__")?
        && let Ok(value) = object.extract::<i64>()
    {
        return Ok(Some(Scalar::Int(value)));
    }
    Ok(object.extract::<f64>().ok().map(Scalar::Float))
}

/// The second operand of an operator: a tensor or a number.
pub(crate) enum Operand<'a, 'py> {
    Tensor(Borrowed<'a, 'py, Tensor>),
    Number(Scalar),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Operand<'a, 'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(tensor) = object.cast::<Tensor>() {
            return Ok(Self::Tensor(tensor));
        }
        Number::extract(object).map(|number| Self::Number(number.0))
    }
}

impl Operand<'_, '_> {
    /// Converts an operand, or returns `None` if it is neither a tensor nor a number.
    #[inline]
    pub(super) fn of<'a, 'py>(
        object: Borrowed<'a, 'py, PyAny>,
    ) -> PyResult<Option<Operand<'a, 'py>>> {
        if let Ok(tensor) = object.cast::<Tensor>() {
            return Ok(Some(Operand::Tensor(tensor)));
        }
        Ok(number(object)?.map(Operand::Number))
    }

    #[inline]
    pub(super) fn as_host(&self) -> host::Operand<'_> {
        match self {
            Self::Tensor(tensor) => host::Operand::Tensor(&tensor.get().0),
            Self::Number(number) => host::Operand::Scalar(*number),
        }
    }
}

/// Reads sizes as torch accepts them: as separate arguments or as one sequence.
pub(super) fn sizes(arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    if let Ok(first) = arguments.get_item(0)
        && arguments.len() == 1
        && !first.hasattr("__index__")?
    {
        return first.extract();
    }
    arguments.extract()
}

/// One dimension or several.
#[derive(FromPyObject)]
pub(crate) enum Dims {
    One(i64),
    Many(Vec<i64>),
}

impl Dims {
    pub(super) fn list(&self) -> &[i64] {
        match self {
            Self::One(dimension) => std::slice::from_ref(dimension),
            Self::Many(dimensions) => dimensions,
        }
    }
}

/// Extracts dimensions that were passed. As in torch, a `None` that was passed means a list of all
/// dimensions, which is another operator than none at all.
pub(super) fn given_dims(value: &Bound<'_, PyAny>) -> PyResult<Option<Dims>> {
    if value.is_none() {
        return Ok(Some(Dims::Many(Vec::new())));
    }
    value.extract().map(Some)
}

pub(super) fn keep(keepdim: bool) -> KeepDims {
    if keepdim { KeepDims::Yes } else { KeepDims::No }
}

/// Returns handles to the tensors of a sequence.
pub(super) fn tensors(sequence: &Bound<'_, PyAny>) -> PyResult<Vec<host::Tensor>> {
    let list: Vec<Bound<'_, PyAny>> = sequence.try_iter()?.collect::<PyResult<_>>()?;
    list.iter()
        .enumerate()
        .map(|(index, item)| match item.cast::<Tensor>() {
            Ok(tensor) => Ok(tensor.get().0.clone()),
            Err(_) => Err(PyTypeError::new_err(format!(
                "expected Tensor as element {index} in argument 0, but got {}",
                item.get_type().name()?
            ))),
        })
        .collect()
}
