//! Runs the program `mindprof` inside the Python interpreter.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program on its arguments, the first of which is its name, and returns its exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| mindprof_cli::run(arguments))
}
