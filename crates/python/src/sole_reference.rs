//! Whether an object is held by one reference alone, for `range`, which uses such handles again.

#![expect(
    unsafe_code,
    reason = "the count of references is told by a function of the interpreter's alone"
)]

use pyo3::ffi;
use pyo3::prelude::*;

/// Returns whether nobody but the caller holds an object.
pub(crate) fn is_sole<T>(_py: Python<'_>, reference: &Py<T>) -> bool {
    // SAFETY: the reference keeps the object alive, and the token shows that this thread holds the
    // interpreter's lock, which guards the count.
    unsafe { ffi::Py_REFCNT(reference.as_ptr()) == 1 }
}
