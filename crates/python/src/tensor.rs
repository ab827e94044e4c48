//! Tensors of the embedded runtime, as Python holds them.

use mindtorch_tensor as host;
use mindtorch_tensor::{KeepDims, Scalar};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PySequence, PyTuple};

use crate::error::Error;

/// The type of a tensor's elements.
#[pyclass(
    frozen,
    eq,
    hash,
    from_py_object,
    name = "dtype",
    module = "mindtorch_v2"
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DType(host::DType);

#[pymethods]
impl DType {
    #[classattr]
    #[pyo3(name = "float32")]
    const FLOAT32: Self = Self(host::DType::F32);
    #[classattr]
    #[pyo3(name = "float64")]
    const FLOAT64: Self = Self(host::DType::F64);
    #[classattr]
    #[pyo3(name = "int32")]
    const INT32: Self = Self(host::DType::I32);
    #[classattr]
    #[pyo3(name = "int64")]
    const INT64: Self = Self(host::DType::I64);
    #[classattr]
    #[pyo3(name = "bool")]
    const BOOL: Self = Self(host::DType::Bool);

    fn __repr__(&self) -> &'static str {
        match self.0 {
            host::DType::F32 => "torch.float32",
            host::DType::F64 => "torch.float64",
            host::DType::I32 => "torch.int32",
            host::DType::I64 => "torch.int64",
            host::DType::Bool => "torch.bool",
        }
    }
}

/// An array of numbers.
#[pyclass(frozen, module = "mindtorch_v2")]
pub(crate) struct Tensor(host::Tensor);

/// What an operator takes beside a tensor.
#[derive(FromPyObject)]
enum Operand<'py> {
    Tensor(PyRef<'py, Tensor>),
    Number(Number),
}

/// A Python number, of the kind it is.
struct Number(Scalar);

impl<'py> FromPyObject<'_, 'py> for Number {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(value) = object.cast::<PyBool>() {
            return Ok(Self(Scalar::Bool(value.is_true())));
        }
        if object.is_instance_of::<PyInt>() {
            return Ok(Self(Scalar::Int(object.extract()?)));
        }
        if let Ok(value) = object.cast::<PyFloat>() {
            return Ok(Self(Scalar::Float(value.value())));
        }
        Err(PyTypeError::new_err("expected a number"))
    }
}

impl Operand<'_> {
    fn as_host(&self) -> host::Operand<'_> {
        match self {
            Self::Tensor(tensor) => host::Operand::Tensor(&tensor.0),
            Self::Number(number) => host::Operand::Scalar(number.0),
        }
    }
}

/// Sizes as torch takes them: one after the other, or as one sequence.
struct Sizes(Vec<i64>);

impl Sizes {
    fn from_arguments(arguments: &Bound<'_, PyTuple>) -> PyResult<Self> {
        if let Ok(first) = arguments.get_item(0)
            && arguments.len() == 1
            && !first.is_instance_of::<PyInt>()
        {
            return Ok(Self(first.extract()?));
        }
        Ok(Self(arguments.extract()?))
    }
}

/// One dimension or several.
#[derive(FromPyObject)]
enum Dims {
    One(i64),
    Many(Vec<i64>),
}

impl Dims {
    fn list(&self) -> &[i64] {
        match self {
            Self::One(dimension) => std::slice::from_ref(dimension),
            Self::Many(dimensions) => dimensions,
        }
    }
}

fn keep(keepdim: bool) -> KeepDims {
    if keepdim { KeepDims::Yes } else { KeepDims::No }
}

fn wrap(result: host::Result<host::Tensor>) -> PyResult<Tensor> {
    Ok(Tensor(result.map_err(Error::from)?))
}

/// Calls a binary operator; Python asks the other operand if this one does not know it.
macro_rules! binary {
    ($self:ident, $other:ident, $py:ident, $call:expr) => {
        match $other.extract::<Operand<'_>>() {
            Ok(operand) => {
                let call: fn(&host::Tensor, host::Operand<'_>) -> host::Result<host::Tensor> =
                    $call;
                Ok(wrap(call(&$self.0, operand.as_host()))?
                    .into_pyobject($py)?
                    .into_any())
            }
            Err(_) => Ok($py.NotImplemented().into_bound($py)),
        }
    };
}

#[pymethods]
impl Tensor {
    fn __add__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        binary!(self, other, py, |tensor, operand| tensor.add(operand))
    }

    fn __radd__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        binary!(self, other, py, |tensor, operand| tensor.add(operand))
    }

    fn __sub__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        binary!(self, other, py, |tensor, operand| tensor.sub(operand))
    }

    fn __rsub__(&self, other: Number) -> PyResult<Self> {
        wrap(self.0.rsub(other.0))
    }

    fn __mul__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        binary!(self, other, py, |tensor, operand| tensor.mul(operand))
    }

    fn __rmul__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        binary!(self, other, py, |tensor, operand| tensor.mul(operand))
    }

    fn __truediv__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        binary!(self, other, py, |tensor, operand| tensor.div(operand))
    }

    fn __rtruediv__(&self, other: Number) -> PyResult<Self> {
        let inverse = self.0.reciprocal().map_err(Error::from)?;
        wrap(inverse.mul(other.0))
    }

    fn __matmul__(&self, other: &Self) -> PyResult<Self> {
        self.matmul(other)
    }

    fn __neg__(&self) -> PyResult<Self> {
        wrap(self.0.neg())
    }

    /// Returns the matrix product.
    fn matmul(&self, other: &Self) -> PyResult<Self> {
        wrap(self.0.matmul(&other.0))
    }

    /// Returns the elements with negative ones set to zero.
    fn relu(&self) -> PyResult<Self> {
        wrap(self.0.relu())
    }

    /// Returns the sum of all elements, or along some dimensions.
    #[pyo3(signature = (dim = None, keepdim = false))]
    fn sum(&self, dim: Option<Dims>, keepdim: bool) -> PyResult<Self> {
        let dimensions = dim.as_ref().map(Dims::list);
        wrap(self.0.sum(dimensions, keep(keepdim), None))
    }

    /// Returns the mean of all elements, or along some dimensions.
    #[pyo3(signature = (dim = None, keepdim = false))]
    fn mean(&self, dim: Option<Dims>, keepdim: bool) -> PyResult<Self> {
        let dimensions = dim.as_ref().map(Dims::list);
        wrap(self.0.mean(dimensions, keep(keepdim), None))
    }

    /// Returns the transpose of a matrix, over the same elements.
    fn t(&self) -> PyResult<Self> {
        wrap(self.0.t())
    }

    /// Returns a view with two dimensions exchanged.
    fn transpose(&self, dim0: i64, dim1: i64) -> PyResult<Self> {
        wrap(self.0.transpose(dim0, dim1))
    }

    /// Returns the only element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, self.0.item().map_err(Error::from)?)
    }

    /// Returns the elements as nested lists, or as a number without dimensions.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        nested(py, self.0.dims(), &mut self.0.to_scalars().into_iter())
    }

    /// The sizes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.dims())
    }

    /// The type of the elements.
    #[getter]
    fn dtype(&self) -> DType {
        DType(self.0.dtype())
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.0.dims().first();
        first
            .copied()
            .ok_or_else(|| PyTypeError::new_err("len() of a 0-d tensor"))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let values = self.tolist(py)?.repr()?;
        Ok(match self.0.dtype() {
            host::DType::F32 | host::DType::I64 | host::DType::Bool => format!("tensor({values})"),
            host::DType::F64 | host::DType::I32 => {
                format!("tensor({values}, dtype={})", self.dtype().__repr__())
            }
        })
    }
}

/// Returns a tensor of ones.
#[pyfunction]
#[pyo3(signature = (*size, dtype = None))]
pub(crate) fn ones(size: &Bound<'_, PyTuple>, dtype: Option<DType>) -> PyResult<Tensor> {
    let Sizes(size) = Sizes::from_arguments(size)?;
    wrap(host::Tensor::ones(&size, dtype.map(|dtype| dtype.0)))
}

/// Returns a tensor of zeros.
#[pyfunction]
#[pyo3(signature = (*size, dtype = None))]
pub(crate) fn zeros(size: &Bound<'_, PyTuple>, dtype: Option<DType>) -> PyResult<Tensor> {
    let Sizes(size) = Sizes::from_arguments(size)?;
    wrap(host::Tensor::zeros(&size, dtype.map(|dtype| dtype.0)))
}

/// Returns a tensor of draws from the standard normal distribution.
#[pyfunction]
#[pyo3(signature = (*size, dtype = None))]
pub(crate) fn randn(size: &Bound<'_, PyTuple>, dtype: Option<DType>) -> PyResult<Tensor> {
    let Sizes(size) = Sizes::from_arguments(size)?;
    wrap(host::Tensor::randn(&size, dtype.map(|dtype| dtype.0)))
}

/// Begins the sequence of random draws that belongs to `seed`.
#[pyfunction]
pub(crate) fn manual_seed(seed: u64) {
    host::manual_seed(seed);
}

/// Returns a tensor of the numbers in `data`: a number, or sequences of them nested to any depth.
#[pyfunction]
#[pyo3(signature = (data, *, dtype = None))]
pub(crate) fn tensor(data: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let mut numbers = Vec::new();
    let mut sizes = Vec::new();
    flatten(data, 0, &mut sizes, &mut numbers)?;
    let found = numbers.iter().map(|number: &Scalar| number.dtype()).max();
    let dtype = match (dtype, found) {
        (Some(dtype), _) => dtype.0,
        (None, Some(host::DType::F64) | None) => host::DType::DEFAULT,
        (None, Some(found)) => found,
    };
    if dtype.is_float() {
        let values: Vec<f64> = numbers.into_iter().map(Scalar::to_f64).collect();
        return wrap(host::Tensor::from_values(&values, &sizes, dtype));
    }
    let values: Vec<i64> = numbers.into_iter().map(to_i64).collect();
    wrap(host::Tensor::from_values(&values, &sizes, dtype))
}

fn to_i64(number: Scalar) -> i64 {
    match number {
        Scalar::Bool(value) => i64::from(value),
        Scalar::Int(value) => value,
        Scalar::Float(value) => value as i64,
    }
}

/// Collects the numbers of nested sequences; `sizes` grows by the first path down and binds all others.
fn flatten(
    data: &Bound<'_, PyAny>,
    depth: usize,
    sizes: &mut Vec<i64>,
    numbers: &mut Vec<Scalar>,
) -> PyResult<()> {
    if let Ok(Number(number)) = data.extract() {
        if depth != sizes.len() {
            return Err(PyValueError::new_err(format!(
                "expected sequence of length {} at dim {depth}, found a number",
                sizes[depth]
            )));
        }
        numbers.push(number);
        return Ok(());
    }
    let Ok(sequence) = data.cast::<PySequence>() else {
        let found = data.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "new(): invalid data type '{found}'"
        )));
    };
    let length = sequence.len()? as i64;
    match sizes.get(depth) {
        None if numbers.is_empty() => sizes.push(length),
        Some(&expected) if expected == length => {}
        Some(&expected) => {
            return Err(PyValueError::new_err(format!(
                "expected sequence of length {expected} at dim {depth} (got {length})"
            )));
        }
        None => {
            return Err(PyTypeError::new_err(format!(
                "expected a number at dim {depth}, found a sequence"
            )));
        }
    }
    for item in sequence.try_iter()? {
        flatten(&item?, depth + 1, sizes, numbers)?;
    }
    Ok(())
}

fn number(py: Python<'_>, value: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Scalar::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Scalar::Int(value) => value.into_pyobject(py)?.into_any(),
        Scalar::Float(value) => value.into_pyobject(py)?.into_any(),
    })
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
        list.append(nested(py, inner, values)?)?;
    }
    Ok(list.into_any())
}
