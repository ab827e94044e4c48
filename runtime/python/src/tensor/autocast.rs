//! Autocast regions, for `mindtorch_v2.amp`.

use mindtorch_tensor as host;
use pyo3::prelude::*;

use super::DType;

/// The settings of a region: whether operators cast, the dtype of products, and whether casts of
/// parameters are cached.
type Setting = (bool, DType, bool);

/// Returns the autocast settings of this thread.
#[pyfunction]
#[pyo3(name = "_autocast")]
pub(crate) fn current_autocast() -> Setting {
    told(host::autocast())
}

/// Enters a region and returns the previous settings.
#[pyfunction]
#[pyo3(name = "_enter_autocast")]
pub(crate) fn enter_autocast(setting: Setting) -> Setting {
    told(host::enter_autocast(asked(setting)))
}

/// Leaves a region and restores the previous settings.
#[pyfunction]
#[pyo3(name = "_leave_autocast")]
pub(crate) fn leave_autocast(previous: Setting) {
    host::leave_autocast(asked(previous));
}

/// Clears the cached casts of parameters.
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
