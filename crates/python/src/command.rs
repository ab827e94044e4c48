//! Runs the command line of mindprof inside of the Python interpreter.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line. `arguments` start with the program's name. Returns the exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| mindprof_cli::run(arguments))
}
