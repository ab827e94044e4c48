//! Exceptions that must not get lost: one that propagates while an object is dropped, and an
//! interrupt that arrives where no exception can be raised.
//!
//! Objects are dropped while an exception unwinds the stack. If such a drop called Python, it would
//! find the exception set and take it for its own, and the interpreter would continue without one.

#![expect(
    unsafe_code,
    reason = "PyO3's safe function resumes a panic if the exception is a `PanicException`"
)]

use std::ffi::c_long;
use std::marker::PhantomData;
use std::ptr;

use pyo3::exceptions::PyException;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

/// A guard that holds this thread's pending exception, if any, and restores it when dropped.
pub(crate) struct PendingException<'py> {
    class: *mut PyObject,
    value: *mut PyObject,
    traceback: *mut PyObject,
    /// Ties the guard to the GIL, so that it is dropped on the same thread while the GIL is held.
    attached: PhantomData<Python<'py>>,
}

impl PendingException<'_> {
    /// Removes the pending exception from the thread until the guard is dropped.
    pub(crate) fn set_aside(py: Python<'_>) -> PendingException<'_> {
        let _ = py;
        let (mut class, mut value, mut traceback) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: `py` proves that the GIL is held. The call transfers ownership of the three
        // references, which are null if no exception is set.
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
        // SAFETY: the lifetime of `attached` guarantees that the GIL is held. The guard owns the
        // references and passes them on only here. An exception raised in between is discarded.
        unsafe { ffi::PyErr_Restore(self.class, self.value, self.traceback) };
    }
}

/// Returns the value of a call whose errors are ignored, or `None` if it failed.
///
/// Exceptions that are no `Exception`, such as `KeyboardInterrupt`, come from a signal handler or
/// from another thread, and the call has only met them. The thread raises a new one of the class as
/// soon as it runs Python code again.
pub(crate) fn ignore_errors<T>(py: Python<'_>, result: PyResult<T>) -> Option<T> {
    let error = match result {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    if !error.is_instance_of::<PyException>(py) {
        // SAFETY: `py` proves that the GIL is held. The interpreter takes its own reference.
        unsafe {
            let thread = PyThread_get_thread_ident();
            ffi::PyThreadState_SetAsyncExc(thread, error.get_type(py).as_ptr());
        }
    }
    None
}

unsafe extern "C" {
    /// Returns the number of the calling thread, as `PyThreadState_SetAsyncExc` takes it. It is part
    /// of the stable ABI.
    fn PyThread_get_thread_ident() -> c_long;
}
