//! The only door to the embedded runtime, which the feature `runtime` builds in.
//!
//! Nothing else in this crate names the runtime or checks the feature. Without it, the functions
//! here do nothing and recognize no tensors.

#[cfg(feature = "runtime")]
pub(crate) use mindtorch_python::{
    note_gradient, note_role, prefill, register, set_list_values_recorded,
};

#[cfg(not(feature = "runtime"))]
pub(crate) use self::absent::{
    note_gradient, note_role, prefill, register, set_list_values_recorded,
};

#[cfg(not(feature = "runtime"))]
mod absent {
    use mindprof_model::TensorRole;
    use pyo3::prelude::*;

    /// Adds nothing to the native module.
    #[expect(clippy::unnecessary_wraps, reason = "the runtime's function can fail")]
    pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        Ok(())
    }

    /// Has no cells to fill.
    pub(crate) fn prefill(_py: Python<'_>) {}

    /// Ignores the switch, which only affects operators of the runtime.
    pub(crate) fn set_list_values_recorded(_recorded: bool) {}

    /// Returns false: `value` is not a tensor of the runtime.
    pub(crate) fn note_role(_value: &Bound<'_, PyAny>, _role: TensorRole) -> bool {
        false
    }

    /// Returns false: `value` is not a tensor of the runtime.
    pub(crate) fn note_gradient(_value: &Bound<'_, PyAny>) -> bool {
        false
    }
}
