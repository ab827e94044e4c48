//! Formats of single numbers and frames as tables show them, for torch's helper functions.

use mindprof_report::{memory_text, share_text, time_text};
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;

/// Formats a time in microseconds.
#[pyfunction]
pub(crate) fn format_time(time_us: f64) -> String {
    time_text(time_us, None)
}

/// Formats a time as a percentage of a total.
#[pyfunction]
pub(crate) fn format_time_share(time_us: f64, total_time_us: f64) -> PyResult<String> {
    if total_time_us == 0.0 && time_us != 0.0 {
        let message = format!("Expected time_us == 0 but got {time_us}");
        return Err(PyAssertionError::new_err(message));
    }
    Ok(share_text(time_us, total_time_us))
}

/// Formats a number of bytes.
#[pyfunction]
pub(crate) fn format_memory(nbytes: i64) -> String {
    memory_text(nbytes)
}

/// Returns whether tables and stacks show a frame.
#[pyfunction]
pub(crate) fn is_shown_frame(frame: &str) -> bool {
    mindprof_analyze::is_shown_frame(frame)
}
