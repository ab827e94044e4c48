//! torch's names and numbers for what the engine tells apart.

use mindprof_model::{DeviceKind, ScopeKind};
use pyo3::prelude::*;

use crate::py_cache::classes;

/// Returns the name that torch uses for a kind of device in device strings.
pub(crate) const fn device_name(device: DeviceKind) -> &'static str {
    device.name()
}

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
    let members = classes(py)?.device_types.bind(py);
    members.get_item(usize::from(device.number()))
}
