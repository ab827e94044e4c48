//! Torch's names and numbers for the engine's scopes, devices and events.

use mindprof_model::{DeviceKind, ScopeKind};
use pyo3::prelude::*;

use crate::py_cache::classes;

/// Returns the name that torch uses for a kind of device in device strings.
pub(crate) const fn device_name(device: DeviceKind) -> &'static str {
    device.name()
}

/// Returns torch's number for a scope.
pub(crate) const fn scope_number(scope: ScopeKind) -> u8 {
    match scope {
        ScopeKind::Function => 0,
        ScopeKind::Backward => 1,
        ScopeKind::User => 7,
    }
}

/// Returns whether events on a kind of device, given as the name of a `DeviceType` member, count
/// towards the total device time of a table.
#[pyfunction]
pub(crate) fn is_device_work(device_type: &str) -> bool {
    DeviceKind::from_type_name(device_type).is_some_and(DeviceKind::is_device_work)
}

/// Returns whether events of this name are excluded from every analysis.
#[pyfunction]
pub(crate) fn is_hidden_event(name: &str) -> bool {
    mindprof_model::is_hidden_event(name)
}

/// Returns the member of `DeviceType` for a kind of device.
pub(crate) fn device_type(py: Python<'_>, device: DeviceKind) -> PyResult<Bound<'_, PyAny>> {
    let members = classes(py)?.device_types.bind(py);
    members.get_item(usize::from(device.number()))
}
