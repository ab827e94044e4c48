//! The door to the engine: releases the GIL, maps errors, lets Ctrl-C through.
//!
//! Whoever forks holds the GIL, so that only what runs without it can be cut off in the middle,
//! with locks that no thread of the child would ever give back. All of that comes through here, and
//! a fork waits until nobody is inside.

#![expect(
    unsafe_code,
    reason = "the hooks around a fork are given to the C library"
)]

use std::cell::RefCell;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use pyo3::prelude::*;

/// Read by who is inside, written by who forks.
static INSIDE: RwLock<()> = RwLock::new(());

/// Calls into the engine from Python.
pub(crate) trait Enter {
    /// Runs `call` without the GIL; its error becomes a Python exception, and a pending Ctrl-C is
    /// raised after it. `call` must not ask for the GIL: a fork that waits for it holds that.
    fn enter<T: Send, E: Into<crate::error::Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T>;

    /// As [`Enter::enter`], for what takes long and shares nothing yet: a fork does not wait for
    /// it.
    fn enter_alone<T: Send, E: Into<crate::error::Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T>;
}

impl Enter for Python<'_> {
    fn enter<T: Send, E: Into<crate::error::Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T> {
        self.enter_alone(|| {
            let _inside = INSIDE.read().unwrap_or_else(PoisonError::into_inner);
            call()
        })
    }

    fn enter_alone<T: Send, E: Into<crate::error::Error> + Send>(
        self,
        call: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T> {
        let result = self.detach(|| call().map_err(Into::into));
        self.check_signals()?;
        Ok(result?)
    }
}

thread_local! {
    static HELD: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Has forks wait from now on. Comes after the recorder's hooks: those that come later are called
/// earlier, and who is inside may need what the recorder's take.
pub(crate) fn watch_forks() {
    // SAFETY: the hooks take and give back a lock, which the thread that forks may do on both
    // sides, and never unwind. Where the system refuses, forks are as they would be without.
    #[cfg(unix)]
    unsafe {
        libc::pthread_atfork(Some(before), Some(after), Some(after));
    }
}

extern "C" fn before() {
    let hold = |held: &RefCell<_>| {
        held.replace(Some(INSIDE.write().unwrap_or_else(PoisonError::into_inner)));
    };
    // A thread that is ending has no memory for a guard any more: it forks as it is.
    let _ = HELD.try_with(hold);
}

extern "C" fn after() {
    let _ = HELD.try_with(RefCell::take);
}
