//! numpy's view of a tensor and a tensor of numpy's array, through the array interface; numpy is imported when used.

use mindtorch_tensor as host;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{Tensor, wrap};
use crate::error::Error;

#[pymethods]
impl Tensor {
    /// Returns an array over the same elements.
    #[pyo3(signature = (*, force = false))]
    fn numpy<'py>(slf: &Bound<'py, Self>, force: bool) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !force {
            refuse_tracked(&slf.get().0)?;
        }
        let source = if force {
            Bound::new(py, Self(slf.get().0.detached()))?
        } else {
            slf.clone()
        };
        py.import("numpy")?.call_method1("asarray", (source,))
    }

    /// Where the elements are and how they lie, in numpy's words.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        refuse_tracked(&self.0)?;
        let bytes = self.0.dtype().bytes() as isize;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", type_text(self.0.dtype())?)?;
        interface.set_item("shape", PyTuple::new(py, self.0.dims())?)?;
        let strides = self.0.strides().iter().map(|stride| stride * bytes);
        interface.set_item("strides", PyTuple::new(py, strides.collect::<Vec<_>>())?)?;
        interface.set_item("data", (self.0.address(), false))?;
        Ok(interface)
    }
}

fn refuse_tracked(tensor: &host::Tensor) -> PyResult<()> {
    if tensor.requires_grad() {
        return Err(PyRuntimeError::new_err(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        ));
    }
    Ok(())
}

fn type_text(dtype: host::DType) -> PyResult<&'static str> {
    Ok(match dtype {
        host::DType::Bool => "|b1",
        host::DType::I32 => "<i4",
        host::DType::I64 => "<i8",
        host::DType::F32 => "<f4",
        host::DType::F64 => "<f8",
        host::DType::BF16 => {
            return Err(PyTypeError::new_err("Got unsupported ScalarType BFloat16"));
        }
    })
}

/// Returns a tensor of the elements of a numpy array.
#[pyfunction]
pub(crate) fn from_numpy(ndarray: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = ndarray.py();
    let numpy = py.import("numpy")?;
    if !ndarray.is_instance(&numpy.getattr("ndarray")?)?
        && !ndarray.hasattr("__array_interface__")?
    {
        return Err(PyTypeError::new_err(format!(
            "expected np.ndarray (got {})",
            ndarray.get_type().name()?
        )));
    }
    let array = numpy.call_method1("ascontiguousarray", (ndarray,))?;
    let shape: Vec<i64> = ndarray.getattr("shape")?.extract()?;
    let kind: String = array.getattr("dtype")?.getattr("str")?.extract()?;
    let dtype = match kind.as_str() {
        "<f4" | "=f4" => host::DType::F32,
        "<f8" | "=f8" => host::DType::F64,
        "<i4" | "=i4" => host::DType::I32,
        "<i8" | "=i8" => host::DType::I64,
        "|b1" => host::DType::Bool,
        _ => {
            let found: String = array.getattr("dtype")?.str()?.extract()?;
            return Err(PyTypeError::new_err(format!(
                "can't convert np.ndarray of type numpy.{found}. The only supported types are: float64, float32, \
                 int64, int32, and bool."
            )));
        }
    };
    let bytes: Vec<u8> = array.call_method0("tobytes")?.extract()?;
    let made = host::Tensor::from_bytes(&bytes, &shape, dtype).map_err(Error::from);
    wrap(Ok(made?))
}
