//! Elements as Python numbers, and Python's container protocol.

use mindtorch_tensor::Scalar;
use pyo3::exceptions::{PyMemoryError, PyRecursionError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyIterator, PyList, PyTuple};

use super::Tensor;
use crate::error::Error;
use crate::size::size_class;

#[pymethods]
impl Tensor {
    /// Returns the only element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, self.0.item().map_err(Error::from)?)
    }

    /// Returns the elements as nested lists, or as a number if the tensor is zero-dimensional.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        check_depth(self.0.rank())?;
        if !fits_as_lists(self.0.dims()) {
            return Err(PyMemoryError::new_err(()));
        }
        let values = self
            .0
            .to_scalars()
            .map_err(|_| PyMemoryError::new_err(()))?;
        nested(py, self.0.dims(), &mut values.into_iter())
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.0.dims().first();
        first
            .copied()
            .ok_or_else(|| PyTypeError::new_err("len() of a 0-d tensor"))
    }

    fn __bool__(&self) -> PyResult<bool> {
        match self.0.count() {
            1 => Ok(self.0.is_nonzero().map_err(Error::from)?),
            0 => Err(PyRuntimeError::new_err(
                "Boolean value of Tensor with no values is ambiguous",
            )),
            _ => Err(PyRuntimeError::new_err(
                "Boolean value of Tensor with more than one value is ambiguous",
            )),
        }
    }

    fn __float__(&self) -> PyResult<f64> {
        Ok(self.0.item().map_err(Error::from)?.to_f64())
    }

    fn __int__(&self) -> PyResult<i64> {
        Ok(match self.0.item().map_err(Error::from)? {
            Scalar::Bool(value) => i64::from(value),
            Scalar::Int(value) => value,
            Scalar::Float(value) => value as i64,
        })
    }

    fn __index__(&self) -> PyResult<i64> {
        let wrong = || {
            PyTypeError::new_err(
                "only integer tensors of a single element can be converted to an index",
            )
        };
        if self.0.count() != 1 {
            return Err(wrong());
        }
        match self.0.item().map_err(Error::from)? {
            Scalar::Bool(value) => Ok(i64::from(value)),
            Scalar::Int(value) => Ok(value),
            Scalar::Float(_) => Err(wrong()),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        if self.0.rank() == 0 {
            return Err(PyTypeError::new_err("iteration over a 0-d tensor"));
        }
        let rows = super::wrap_all(self.0.unbind(0))?;
        PyTuple::new(py, rows)?.try_iter()
    }

    fn __contains__(&self, element: super::arguments::Operand<'_, '_>) -> PyResult<bool> {
        let same = self
            .0
            .compare(mindtorch_tensor::Comparison::Eq, element.as_host());
        let same = same.map_err(Error::from)?;
        let same = same.to_bools().map_err(Error::from)?;
        Ok(same.contains(&true))
    }
}

pub(super) fn number(py: Python<'_>, value: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Scalar::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Scalar::Int(value) => value.into_pyobject(py)?.into_any(),
        Scalar::Float(value) => value.into_pyobject(py)?.into_any(),
    })
}

/// Returns sizes as a `Size` object.
pub(super) fn size<'py>(py: Python<'py>, dims: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    size_class(py)?.call1((PyTuple::new(py, dims)?,))
}

/// Rejects tensors with more dimensions than Python's recursion limit allows.
pub(super) fn check_depth(rank: usize) -> PyResult<()> {
    const DEEPEST: usize = 1000;
    if rank > DEEPEST {
        return Err(PyRecursionError::new_err(
            "maximum recursion depth exceeded",
        ));
    }
    Ok(())
}

/// Returns whether the lists for these sizes fit into the address space. A tensor without elements
/// can have arbitrary sizes.
fn fits_as_lists(dims: &[usize]) -> bool {
    const MOST: usize = 1 << 40;
    let inner = dims.split_last().map_or(&[][..], |(_, outer)| outer);
    let lists = inner.iter().try_fold(1_usize, |lists, &dim| match dim {
        0 => Err(true),
        _ => lists
            .checked_mul(dim)
            .filter(|&lists| lists <= MOST)
            .ok_or(false),
    });
    match lists {
        Ok(_) => true,
        Err(fits) => fits,
    }
}

fn nested<'py>(
    py: Python<'py>,
    dims: &[usize],
    values: &mut impl Iterator<Item = Scalar>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((&size, inner)) = dims.split_first() else {
        return match values.next() {
            Some(value) => number(py, value),
            None => Ok(PyList::empty(py).into_any()),
        };
    };
    let list = PyList::empty(py);
    for _ in 0..size {
        if inner.len() == 1 {
            py.check_signals()?;
        }
        list.append(nested(py, inner, values)?)?;
    }
    Ok(list.into_any())
}
