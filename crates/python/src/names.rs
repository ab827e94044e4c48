//! torch's names and numbers for what the engine tells apart.

use mindprof_model::{DeviceKind, ScopeKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

pub(crate) use mindprof_formats::device_name;

/// Returns the number of a scope among torch's.
pub(crate) const fn scope_number(scope: ScopeKind) -> u8 {
    match scope {
        ScopeKind::Function => 0,
        ScopeKind::Backward => 1,
        ScopeKind::User => 7,
    }
}

/// Returns the member of `DeviceType` for a kind of device.
pub(crate) fn device_type(py: Python<'_>, device: DeviceKind) -> PyResult<Bound<'_, PyAny>> {
    static MEMBERS: PyOnceLock<Py<PyList>> = PyOnceLock::new();
    let members = MEMBERS.get_or_try_init(py, || {
        let module = py.import("mindprof._device_type")?;
        let members = module.getattr("MEMBERS")?;
        Ok::<_, PyErr>(members.cast_into::<PyList>()?.unbind())
    })?;
    members.bind(py).get_item(usize::from(device.number()))
}

/// Returns a class of `mindprof._function_event`.
pub(crate) fn class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let found = cell.get_or_try_init(py, || {
        let module = py.import("mindprof._function_event")?;
        Ok::<_, PyErr>(module.getattr(name)?.unbind())
    })?;
    Ok(found.bind(py))
}
