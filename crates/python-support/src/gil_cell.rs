//! A cell guarded by the GIL, which every caller with a `Python` token already holds.
//!
//! It replaces a mutex on the path of ranges, where the four atomic operations of a mutex would be
//! a fifth of the cost of entering and leaving a range.

#![expect(
    unsafe_code,
    reason = "the type system does not know that the GIL excludes other threads"
)]

use std::cell::UnsafeCell;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Refuses an interpreter that runs without the GIL.
///
/// Declaring that the module needs the GIL is not enough, because a free-threaded interpreter can
/// be told to ignore that declaration.
///
/// # Errors
/// Returns an `ImportError` if the GIL is disabled.
pub fn require_lock(py: Python<'_>) -> PyResult<()> {
    let Some(is_enabled) = py.import("sys")?.getattr_opt("_is_gil_enabled")? else {
        return Ok(());
    };
    if is_enabled.call0()?.is_truthy()? {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "mindprof needs the GIL, which is disabled in this interpreter\n\
        hint: run without PYTHON_GIL=0 and -X gil=0, so that importing mindprof enables it",
    ))
}

/// A value that only the thread holding the GIL can access.
///
/// The native module refuses to load into an interpreter without the GIL, see [`require_lock`].
#[derive(Default)]
pub struct GilCell<T>(UnsafeCell<T>);

// SAFETY: `with` is the only access to a shared value, and its `Python` token proves that the
// caller holds the GIL, which `require_lock` ensures exists.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    /// Creates a cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Returns a mutable reference to the value of an unshared cell.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Calls `action` with the value.
    ///
    /// `action` is a plain function pointer, so it captures no `Python` token and cannot run Python
    /// code, which might release the GIL or enter this cell again.
    pub fn with<A, R>(&self, _py: Python<'_>, argument: A, action: fn(&mut T, A) -> R) -> R {
        // SAFETY: the token proves that this thread holds the GIL, and `action` cannot release it
        // (see above), so no second reference exists before this one ends.
        action(unsafe { &mut *self.0.get() }, argument)
    }
}
