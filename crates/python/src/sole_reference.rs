//! Checks whether an object has a single reference, so that `range` can reuse its handles.

#![expect(
    unsafe_code,
    reason = "the reference count is available only through the C API"
)]

use pyo3::ffi;
use pyo3::prelude::*;

/// Returns whether `reference` is the only reference to its object.
pub(crate) fn is_sole<T>(_py: Python<'_>, reference: &Py<T>) -> bool {
    // SAFETY: `reference` keeps the object alive, and the token proves that the GIL, which guards
    // the reference count, is held.
    unsafe { ffi::Py_REFCNT(reference.as_ptr()) == 1 }
}
