//! Scopes of operators that `mindtorch_v2` composes in Python, and tensors as bytes.

use std::borrow::Cow;

use mindprof_record::OpenScope;
use mindtorch_tensor as host;
use mindtorch_tensor::OperatorInput;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use super::arguments::number;
use super::{DType, Tensor, wrap};
use crate::error::Error;
use mindprof_python_support::gil_cell::GilCell;

/// The recorder scope of a composed operator, used as a context manager.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct OperatorScope {
    name: Py<PyString>,
    inputs: Py<PyTuple>,
    open: GilCell<Option<OpenScope>>,
}

#[pymethods]
impl OperatorScope {
    #[new]
    #[pyo3(signature = (name, *inputs))]
    fn new(name: Py<PyString>, inputs: Py<PyTuple>) -> Self {
        Self {
            name,
            inputs,
            open: GilCell::default(),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let (this, py) = (slf.get(), slf.py());
        if mindprof_record::is_recording() {
            let inputs = this.inputs.bind(py).iter();
            let inputs: Vec<OperatorInput> = inputs
                .map(|input| operator_input(&input))
                .collect::<PyResult<_>>()?;
            let name: Cow<'_, str> = this.name.bind(py).to_string_lossy();
            let open = host::open_operator(&name, &inputs);
            this.open.with(py, open, std::mem::replace);
        }
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        if let Some(open) = self.open.with(py, None, std::mem::replace) {
            open.close();
        }
    }
}

fn operator_input(value: &Bound<'_, PyAny>) -> PyResult<OperatorInput> {
    if let Ok(tensor) = value.cast::<Tensor>() {
        return Ok(OperatorInput::Tensor(tensor.get().0.clone()));
    }
    if let Some(scalar) = number(value.as_borrowed())? {
        return Ok(OperatorInput::Scalar(scalar));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        if let Ok(integers) = value.extract() {
            return Ok(OperatorInput::Integers(integers));
        }
        if let Ok(tensors) = super::arguments::tensors(value) {
            return Ok(OperatorInput::Tensors(tensors));
        }
    }
    Ok(OperatorInput::Absent)
}

/// Returns the elements as bytes, in native byte order and row-major order.
#[pyfunction]
pub(crate) fn tensor_to_bytes<'py>(
    py: Python<'py>,
    tensor: &Tensor,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = tensor.0.to_bytes().map_err(Error::from)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Creates a tensor from bytes in the form that `tensor_to_bytes` returns.
#[pyfunction]
pub(crate) fn tensor_from_bytes(data: &[u8], size: Vec<i64>, dtype: DType) -> PyResult<Tensor> {
    wrap(host::Tensor::from_bytes(data, &size, dtype.0))
}

/// Sets the number of threads for large loops. Returns `False` if threads are already running.
#[pyfunction]
pub(crate) fn set_num_threads(count: usize) -> bool {
    host::set_thread_count(count)
}
