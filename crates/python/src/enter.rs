//! Calls into the engine, with the engine's errors mapped to Python exceptions.
//!
//! The rules for the GIL and for forks are those of [`mindprof_python_support::enter`].

use mindprof_python_support::enter;
use pyo3::prelude::*;

use crate::error::Error;

/// Calls into the engine from Python.
pub(crate) trait Enter {
    /// Runs `call` without the GIL. Its error becomes a Python exception, and a pending Ctrl-C is
    /// raised after it.
    fn enter<T: Send, E: Into<Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T>;

    /// Like [`Enter::enter`], for long calls that share no state with other threads yet: a fork does
    /// not wait for them.
    fn enter_alone<T: Send, E: Into<Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T>;
}

impl Enter for Python<'_> {
    fn enter<T: Send, E: Into<Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T> {
        enter::enter(self, || call().map_err(Into::into))
    }

    fn enter_alone<T: Send, E: Into<Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T> {
        enter::enter_alone(self, || call().map_err(Into::into))
    }
}
