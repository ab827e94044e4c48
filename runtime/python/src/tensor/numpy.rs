//! Exchange of elements with numpy in both directions, without copying. numpy is imported on first
//! use.
#![expect(unsafe_code, reason = "tensors share the memory of numpy arrays")]

use std::sync::atomic::{AtomicBool, Ordering};

use mindtorch_tensor as host;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{Tensor, wrap};

#[pymethods]
impl Tensor {
    /// Returns a numpy array over the same elements.
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

    /// The address, shape and strides of the elements, in numpy's array interface protocol.
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

/// Creates a tensor that shares the elements of a numpy array and keeps the array alive. An array
/// that is not aligned is copied.
#[pyfunction]
pub(crate) fn from_numpy(ndarray: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = ndarray.py();
    let numpy = py.import("numpy")?;
    if !ndarray.is_instance(&numpy.getattr("ndarray")?)? {
        return Err(PyTypeError::new_err(format!(
            "expected np.ndarray (got {})",
            type_name(ndarray)?
        )));
    }
    // A subclass may report anything about itself. A view of the base class over the same elements
    // reports the truth, and no other code holds that view.
    let plain = numpy
        .getattr("ndarray")?
        .call_method1("view", (ndarray, numpy.getattr("ndarray")?))?;
    warn_if_read_only(&plain)?;
    let dtype = element_type(&plain)?;
    let sizes: Vec<i64> = plain.getattr("shape")?.extract()?;
    let strides = element_strides(&plain, dtype)?;
    let address: usize = plain.getattr("ctypes")?.getattr("data")?.extract()?;
    let aligned: bool = plain.getattr("flags")?.getattr("aligned")?.extract()?;
    if !aligned {
        let array = numpy.call_method1("ascontiguousarray", (plain,))?;
        let bytes: Vec<u8> = array.call_method0("tobytes")?.extract()?;
        return wrap(host::Tensor::from_bytes(&bytes, &sizes, dtype));
    }
    let owner = Box::new((ndarray.clone().unbind(), plain.unbind()));
    // SAFETY: `plain` is a genuine `ndarray`, so numpy guarantees that its address, shape and
    // strides describe valid elements of this dtype, and the `aligned` flag was checked above.
    // `owner` holds references to both arrays, which keep the memory in place. Writes to the array
    // run under the program's own synchronization, as for any array shared between threads.
    wrap(unsafe { host::Tensor::from_foreign(address, dtype, &sizes, &strides, owner) })
}

fn type_name<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let kind = value.get_type();
    let module: String = kind.getattr("__module__")?.extract()?;
    let name = kind.getattr("__qualname__")?;
    if module == "builtins" {
        return Ok(name);
    }
    Ok(format!("{module}.{name}")
        .into_pyobject(value.py())?
        .into_any())
}

/// Warns about a read-only array, once per process, as torch does.
fn warn_if_read_only(array: &Bound<'_, PyAny>) -> PyResult<()> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    let writeable: bool = array.getattr("flags")?.getattr("writeable")?.extract()?;
    // Relaxed: no other data is published through this flag.
    if writeable || WARNED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let message = "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This \
                   means writing to this tensor will result in undefined behavior. You may want to copy the array to \
                   protect its data or make it writable before converting it to a tensor. This type of warning will \
                   be suppressed for the rest of this program.";
    let warnings = array.py().import("warnings")?;
    warnings.call_method1("warn", (message,))?;
    Ok(())
}

fn element_type(array: &Bound<'_, PyAny>) -> PyResult<host::DType> {
    let kind = array.getattr("dtype")?;
    let native: bool = kind.getattr("isnative")?.extract()?;
    if !native {
        return Err(PyValueError::new_err(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is \
             currently not supported.",
        ));
    }
    let text: String = kind.getattr("str")?.extract()?;
    match text.trim_start_matches(['<', '>', '=', '|']) {
        "f4" => Ok(host::DType::F32),
        "f8" => Ok(host::DType::F64),
        "i4" => Ok(host::DType::I32),
        "i8" => Ok(host::DType::I64),
        "b1" => Ok(host::DType::Bool),
        _ => Err(PyTypeError::new_err(format!(
            "can't convert np.ndarray of type numpy.{}. The only supported types are: float64, float32, int64, int32, \
             and bool.",
            kind.getattr("type")?.getattr("__name__")?
        ))),
    }
}

/// Returns the strides in elements.
fn element_strides(array: &Bound<'_, PyAny>, dtype: host::DType) -> PyResult<Vec<isize>> {
    let bytes = dtype.bytes() as isize;
    let strides: Vec<isize> = array.getattr("strides")?.extract()?;
    if strides.iter().any(|stride| stride % bytes != 0) {
        return Err(PyValueError::new_err(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate \
             the memory.",
        ));
    }
    if strides.iter().any(|&stride| stride < 0) {
        return Err(PyValueError::new_err(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not \
             currently supported. (You can probably work around this by making a copy of your array  with \
             array.copy().) ",
        ));
    }
    Ok(strides.iter().map(|stride| stride / bytes).collect())
}
