//! The exception that is on its way through the interpreter while something is dropped.
//!
//! Objects die while one unwinds the stack. A drop that calls Python then would find it set, take
//! it for its own, and the interpreter would go on unwinding without one.

#![expect(
    unsafe_code,
    reason = "PyO3 resumes a panic when it takes an exception that stands for one"
)]

use std::marker::PhantomData;
use std::ptr;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

/// Keeps the exception of this thread, if there is one, from what runs while this lives.
pub(crate) struct PendingException<'py> {
    class: *mut PyObject,
    value: *mut PyObject,
    traceback: *mut PyObject,
    /// The thread keeps the GIL as long, and is the one that it is given back to.
    attached: PhantomData<Python<'py>>,
}

impl PendingException<'_> {
    /// Sets it aside.
    pub(crate) fn set_aside(py: Python<'_>) -> PendingException<'_> {
        let _ = py;
        let (mut class, mut value, mut traceback) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the GIL is held. The three references are ours from here on, null where there is
        // nothing.
        unsafe { ffi::PyErr_Fetch(&raw mut class, &raw mut value, &raw mut traceback) };
        PendingException {
            class,
            value,
            traceback,
            attached: PhantomData,
        }
    }
}

impl Drop for PendingException<'_> {
    fn drop(&mut self) {
        // SAFETY: the GIL is held, by the lifetime; the references are ours, and are given away
        // here and nowhere else. What was raised in between is taken away, as it was swallowed.
        unsafe { ffi::PyErr_Restore(self.class, self.value, self.traceback) };
    }
}
