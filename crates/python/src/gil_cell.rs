//! A cell that is guarded by the interpreter's lock, which whoever shows a token already holds.
//!
//! It stands in for a mutex where that would be a fifth of the work: a mutex costs four atomic
//! operations each time a range is entered and left.

#![expect(
    unsafe_code,
    reason = "that the interpreter's lock keeps other threads out is beyond what types say"
)]

use std::cell::UnsafeCell;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Refuses an interpreter that runs without its lock: to declare that a module needs it is a wish,
/// which such an interpreter may have been told to ignore.
pub(crate) fn require_lock(py: Python<'_>) -> PyResult<()> {
    let Some(is_enabled) = py.import("sys")?.getattr_opt("_is_gil_enabled")? else {
        return Ok(());
    };
    if is_enabled.call0()?.is_truthy()? {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "mindprof needs the interpreter's lock, which is switched off here\n\
         hint: run without PYTHON_GIL=0 and -X gil=0, and the lock is switched on at import",
    ))
}

/// A value that one thread at a time can touch: the one that holds the interpreter's lock.
///
/// The module is not loaded into an interpreter that runs without it: see [`require_lock`].
#[derive(Default)]
pub(crate) struct GilCell<T>(UnsafeCell<T>);

// SAFETY: `with` is the only way to a value that is shared, and takes a proof that the caller holds
// the lock.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    /// Makes a cell that holds `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Returns the value, to whom nobody shares the cell with.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Calls `action` with the value.
    ///
    /// `action` is a plain function pointer over plain values, so it has no token and cannot run
    /// Python code, which might release the lock or come back here.
    pub(crate) fn with<A, R>(&self, _py: Python<'_>, argument: A, action: fn(&mut T, A) -> R) -> R {
        // SAFETY: the token shows that this thread holds the lock, and `action` cannot let go of it
        // (see above), so that no second reference exists before this one ends.
        action(unsafe { &mut *self.0.get() }, argument)
    }
}
