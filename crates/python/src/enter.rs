//! The door to the engine: releases the GIL, maps errors, lets Ctrl-C through.
//!
//! Whoever forks holds the GIL, so that only what runs without it can be cut off in the middle,
//! with locks that no thread of the child would ever give back. All of that comes through here, and
//! a fork waits until nobody is inside. Functions of the user that the engine calls are outside:
//! they may fork themselves, or wait for a thread that does.

#![expect(
    unsafe_code,
    reason = "the hooks around a fork are given to the C library"
)]

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;

/// Read by who is inside, written by who forks.
static INSIDE: RwLock<()> = RwLock::new(());

/// Calls into the engine from Python.
pub(crate) trait Enter {
    /// Runs `call` without the GIL; its error becomes a Python exception, and a pending Ctrl-C is
    /// raised after it. `call` asks for the GIL by [`leave`] alone: a fork that waits for it holds
    /// that.
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
            let _inside = Inside::enter();
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

/// Calls a function of the user from inside of the engine: with the GIL, and outside for as long as
/// it takes. No lock of the engine is held meanwhile.
pub(crate) fn leave<T>(call: impl FnOnce(Python<'_>) -> T) -> T {
    // Dropped after the GIL is given back: a fork that waits for whoever is inside holds that.
    let _outside = Outside::leave();
    Python::attach(call)
}

thread_local! {
    /// What keeps forks waiting while this thread is inside. Never dropped with the thread, so that
    /// one that is ending has it too.
    static GUARD: RefCell<Option<Guard>> = const { RefCell::new(None) };
}

type Guard = ManuallyDrop<RwLockReadGuard<'static, ()>>;

fn take_guard() {
    let guard = INSIDE.read().unwrap_or_else(PoisonError::into_inner);
    GUARD.set(Some(ManuallyDrop::new(guard)));
}

/// Returns whether there was one to give back.
fn give_guard_back() -> bool {
    GUARD.take().map(ManuallyDrop::into_inner).is_some()
}

/// Keeps forks waiting while it lives. Within another one it does nothing: whoever reads twice
/// waits for ever once a fork waits in between.
struct Inside {
    is_first: bool,
}

impl Inside {
    fn enter() -> Self {
        let is_first = GUARD.with_borrow(Option::is_none);
        if is_first {
            take_guard();
        }
        Self { is_first }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.is_first {
            give_guard_back();
        }
    }
}

/// Lets forks pass while it lives, if this thread was inside.
struct Outside {
    was_inside: bool,
}

impl Outside {
    fn leave() -> Self {
        Self {
            was_inside: give_guard_back(),
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        if self.was_inside {
            take_guard();
        }
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
