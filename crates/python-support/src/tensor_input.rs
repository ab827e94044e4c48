//! `TensorInput`: a framework's description of a tensor, validated and encoded once, so that
//! operators need not read it again.

use mindprof_model::InputsEncoder;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::named_argument::{instance, number};
use crate::tensor_argument::{dense_strides, dtype_of_text};

/// A tensor among the inputs of an operator, for frameworks whose own tensors tell less.
///
/// It cannot be changed, so an operator that is given it costs less than with any other tensor.
///
/// Args:
///     shape: Its sizes.
///     dtype: The type of its elements, by torch's or numpy's name.
///     strides: How many elements lie between neighbours, by dimension; dense if None.
///
/// Raises `ValueError` if a size is below zero, or if there are more or fewer strides than sizes.
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
        let dtype: &Bound<'_, PyString> = instance("dtype", "the name of a type", dtype)?;
        let dims = shape.iter().map(|&size| {
            usize::try_from(size).map_err(|_| {
                PyValueError::new_err(format!(
                    "argument 'shape': expected sizes from 0 on, found {size}"
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
                "argument 'strides': expected one for each of {} dimensions, found {}",
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
    number("shape", "sizes of 64 bits", value)
}

fn steps(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<isize>>> {
    number("strides", "numbers of 64 bits", value)
}

impl TensorInput {
    /// Returns the encoded tensor.
    pub(crate) fn words(&self) -> &[u64] {
        self.inputs.words()
    }
}
