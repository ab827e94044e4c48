//! The door to the engine: releases the GIL, maps errors, lets Ctrl-C through.

use pyo3::prelude::*;

/// Calls into the engine from Python.
pub(crate) trait Enter {
    /// Runs `call` without the GIL; its error becomes a Python exception, and a pending Ctrl-C is
    /// raised after it.
    fn enter<T: Send, E: Into<crate::error::Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T>;
}

impl Enter for Python<'_> {
    fn enter<T: Send, E: Into<crate::error::Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T> {
        let result = self.detach(|| call().map_err(Into::into));
        self.check_signals()?;
        Ok(result?)
    }
}
