//! Regions in which operators cast by themselves.

use mindtorch_tensor as host;
use pyo3::prelude::*;

use super::DType;

/// Whether operators cast, the type of products, and whether casts of parameters are kept.
type Setting = (bool, DType, bool);

/// Returns what operators of this thread do at present.
#[pyfunction]
#[pyo3(name = "_autocast")]
pub(crate) fn current_autocast() -> Setting {
    told(host::autocast())
}

/// Begins a region and returns what was asked for before.
#[pyfunction]
#[pyo3(name = "_enter_autocast")]
pub(crate) fn enter_autocast(setting: Setting) -> Setting {
    told(host::enter_autocast(asked(setting)))
}

/// Ends a region, given what was asked for before it.
#[pyfunction]
#[pyo3(name = "_leave_autocast")]
pub(crate) fn leave_autocast(previous: Setting) {
    host::leave_autocast(asked(previous));
}

/// Frees the casts of parameters that are kept.
#[pyfunction]
pub(crate) fn clear_autocast_cache() {
    host::clear_autocast_cache();
}

fn told(setting: host::Autocast) -> Setting {
    (setting.enabled, DType(setting.dtype), setting.caches)
}

fn asked((enabled, dtype, caches): Setting) -> host::Autocast {
    host::Autocast {
        enabled,
        dtype: dtype.0,
        caches,
    }
}
