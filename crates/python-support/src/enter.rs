//! Calls from Python into the engine: releases the GIL, maps errors and delivers Ctrl-C.
//!
//! A thread that forks holds the GIL, so a fork can interrupt only code that runs without the GIL,
//! possibly while it holds locks that no thread of the child would ever release. All such code runs
//! inside of [`enter`], and a fork waits until no thread is inside. User functions that the engine
//! calls run outside, through [`leave`], because they may fork or wait for a thread that does.

#![expect(unsafe_code, reason = "fork hooks are registered with the C library")]

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;

/// Read-locked by threads inside the engine, write-locked by a thread that forks.
static INSIDE: RwLock<()> = RwLock::new(());

/// Runs `call` without the GIL. Its error becomes a Python exception, and a pending Ctrl-C is
/// raised after it.
///
/// `call` must acquire the GIL through [`leave`] only: a fork that waits for this thread holds it.
///
/// # Errors
/// Returns the error of `call`, or `KeyboardInterrupt` if one is pending.
pub fn enter<T: Send, E: Into<PyErr> + Send>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    enter_alone(py, || {
        let _inside = Inside::enter();
        call()
    })
}

/// Like [`enter`], for long calls that share no state with other threads yet: a fork does not wait
/// for them.
///
/// # Errors
/// As [`enter`].
pub fn enter_alone<T: Send, E: Into<PyErr> + Send>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    let result = py.detach(call);
    py.check_signals()?;
    result.map_err(Into::into)
}

/// Calls a user function from inside the engine, with the GIL. Forks need not wait for this thread
/// during the call, and the engine must hold no lock of its own.
pub fn leave<T>(call: impl FnOnce(Python<'_>) -> T) -> T {
    // Dropped after the GIL is released: a fork that waits for threads inside holds the GIL.
    let _outside = Outside::leave();
    Python::attach(call)
}

thread_local! {
    /// The guard that makes forks wait while this thread is inside. It has no destructor, so that
    /// it is available while the thread ends.
    static GUARD: RefCell<Option<Guard>> = const { RefCell::new(None) };
}

type Guard = ManuallyDrop<RwLockReadGuard<'static, ()>>;

fn take_guard() {
    let guard = INSIDE.read().unwrap_or_else(PoisonError::into_inner);
    GUARD.set(Some(ManuallyDrop::new(guard)));
}

/// Returns whether this thread held the guard.
fn give_guard_back() -> bool {
    GUARD.take().map(ManuallyDrop::into_inner).is_some()
}

/// Makes forks wait while it lives. A nested one does nothing, because a second read lock would
/// deadlock with a fork that waits in between.
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

/// Lets forks proceed while it lives, if this thread was inside.
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

/// Registers the fork hooks; from now on, forks wait for threads inside the engine.
///
/// Call it after the recorder registered its own hooks. Hooks registered later run earlier, and
/// threads inside may need the locks that the recorder's hooks take.
pub fn watch_forks() {
    // SAFETY: the hooks only lock and unlock `INSIDE` on the forking thread, which exists in both
    // processes, and they never unwind. If registration fails, forks behave as they would without.
    #[cfg(unix)]
    unsafe {
        libc::pthread_atfork(Some(before), Some(after), Some(after));
    }
}

extern "C" fn before() {
    let hold = |held: &RefCell<_>| {
        held.replace(Some(INSIDE.write().unwrap_or_else(PoisonError::into_inner)));
    };
    // A thread that is ending has no thread-local memory any more and forks without waiting.
    let _ = HELD.try_with(hold);
}

extern "C" fn after() {
    let _ = HELD.try_with(RefCell::take);
}
