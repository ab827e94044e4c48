//! `TensorInput`: a framework's description of a tensor, validated and encoded once, so that
//! operators need not read it each time.

use mindprof_model::InputsEncoder;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::named_argument::{instance, number};
use crate::tensor_argument::{dense_strides, dtype_of_text};

/// A tensor among the inputs of an operator, for frameworks whose tensors lack these attributes.
///
/// It is immutable, so recording it costs less than recording any other tensor.
///
/// Args:
///     shape: The sizes.
///     dtype: The type of the elements, by torch's or numpy's name.
///     strides: The strides in elements, one per dimension, or None for a contiguous tensor.
///
/// Raises `ValueError` if a size is negative or the numbers of strides and sizes differ.
#[pyclass(frozen, module = "mindprof._core")]
pub struct TensorInput {
    #[pyo3(get)]
    shape: Py<PyTuple>,
    #[pyo3(get)]
    dtype: Py<PyString>,
    #[pyo3(get)]
    stride: Py<PyTuple>,
    inputs: InputsEncoder,
}

#[pymethods]
impl TensorInput {
    #[new]
    #[pyo3(signature = (shape, dtype, strides = None))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = sizes)] shape: Vec<i64>,
        dtype: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = steps)] strides: Option<Vec<isize>>,
    ) -> PyResult<Self> {
        let dtype: &Bound<'_, PyString> = instance("dtype", "the name of a dtype", dtype)?;
        let dims = shape.iter().map(|&size| {
            usize::try_from(size).map_err(|_| {
                PyValueError::new_err(format!(
                    "argument 'shape': expected non-negative sizes, found {size}"
                ))
            })
        });
        let dims = dims.collect::<PyResult<Vec<_>>>()?;
        let strides = strides.unwrap_or_else(|| {
            let mut strides = Vec::new();
            dense_strides(&dims, &mut strides);
            strides
        });
        if strides.len() != dims.len() {
            return Err(PyValueError::new_err(format!(
                "argument 'strides': expected one per dimension ({}), found {}",
                dims.len(),
                strides.len()
            )));
        }
        let mut inputs = InputsEncoder::default();
        inputs.tensor(dtype_of_text(dtype), &dims, &strides);
        Ok(Self {
            shape: PyTuple::new(py, shape)?.unbind(),
            dtype: dtype.clone().unbind(),
            stride: PyTuple::new(py, strides)?.unbind(),
            inputs,
        })
    }

    fn __getnewargs__(&self, py: Python<'_>) -> (Py<PyTuple>, Py<PyString>, Py<PyTuple>) {
        (
            self.shape.clone_ref(py),
            self.dtype.clone_ref(py),
            self.stride.clone_ref(py),
        )
    }
}

fn sizes(value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    number("shape", "64-bit sizes", value)
}

fn steps(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<isize>>> {
    number("strides", "64-bit integers", value)
}

impl TensorInput {
    /// Returns the encoded tensor.
    pub(crate) fn words(&self) -> &[u64] {
        self.inputs.words()
    }
}
