//! The thread-local autograd mode: whether operators are tracked, and the next sequence number.
//!
//! Tracking is off inside [`NoGrad`] and inside an operator that has its own formula ([`Below`]),
//! because the operators that it calls are part of its computation.

use std::cell::Cell;
use std::marker::PhantomData;

use mindprof_record::{ThreadKey, fast_thread_local};

/// The autograd mode of one thread.
struct Mode {
    enabled: Cell<bool>,
    below: Cell<bool>,
    sequence: Cell<u32>,
    /// The thread's recorder key, once it was looked up.
    thread: Cell<ThreadKey>,
}

fast_thread_local! {
    static MODE: Mode = Mode {
        enabled: Cell::new(true),
        below: Cell::new(false),
        sequence: Cell::new(0),
        thread: Cell::new(ThreadKey::NONE),
    }
}

/// Reads or changes the mode of this thread, or returns `at_first` if the thread is ending and its
/// mode is gone.
#[inline]
fn with_mode<T>(action: impl FnOnce(&Mode) -> T, at_first: T) -> T {
    MODE.try_with(action).unwrap_or(at_first)
}

/// Returns whether the caller has tracking enabled on this thread.
pub fn is_grad_enabled() -> bool {
    with_mode(|mode| mode.enabled.get(), true)
}

/// Enables or disables tracking on this thread and returns the previous setting.
pub fn set_grad_enabled(enabled: bool) -> bool {
    with_mode(|mode| mode.enabled.replace(enabled), true)
}

/// Returns whether an operator called now would be tracked.
#[inline]
pub(crate) fn is_tracking() -> bool {
    next_sequence().is_some()
}

/// Returns the sequence number of this thread's next node, or `None` if an operator would not be
/// tracked.
#[inline]
pub(crate) fn next_sequence() -> Option<u32> {
    let ask = |mode: &Mode| {
        let is_tracking = mode.enabled.get() && !mode.below.get();
        is_tracking.then(|| mode.sequence.get())
    };
    with_mode(ask, Some(0))
}

/// Returns the sequence number of this thread's next node, tracked or not.
pub(super) fn upcoming_sequence() -> u32 {
    with_mode(|mode| mode.sequence.get(), 0)
}

/// Identifies the forward operator of a node: its thread, and its sequence number there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward {
    pub(super) sequence: u32,
    pub(super) thread: ThreadKey,
}

/// Takes the next sequence number of this thread. It skips the highest number, which means "none"
/// to the recorder.
pub(super) fn take_forward() -> Forward {
    let take = |mode: &Mode| {
        let sequence = mode.sequence.get();
        mode.sequence.set((sequence + 1) % (u32::MAX >> 1));
        if mode.thread.get() == ThreadKey::NONE {
            mode.thread.set(ThreadKey::current());
        }
        let thread = mode.thread.get();
        Forward { sequence, thread }
    };
    let at_exit = Forward {
        sequence: 0,
        thread: ThreadKey::NONE,
    };
    with_mode(take, at_exit)
}

/// Guard of an operator's computation: operators called while it lives are not tracked.
pub(crate) struct Below {
    before: bool,
    /// Makes the guard `!Send`: it must be dropped on the thread that created it.
    thread_bound: PhantomData<*const ()>,
}

impl Below {
    #[inline]
    pub(crate) fn enter() -> Self {
        Self {
            before: with_mode(|mode| mode.below.replace(true), false),
            thread_bound: PhantomData,
        }
    }
}

impl Drop for Below {
    #[inline]
    fn drop(&mut self) {
        with_mode(|mode| mode.below.set(self.before), ());
    }
}

/// Guard that disables tracking while it lives, and restores the previous mode.
///
/// It also lifts the mark of an enclosing operator, so that code inside sees tracking as disabled
/// by the caller.
pub(crate) struct NoGrad {
    enabled: bool,
    below: bool,
}

impl NoGrad {
    pub(crate) fn enter() -> Self {
        let enter = |mode: &Mode| (mode.enabled.replace(false), mode.below.replace(false));
        let (enabled, below) = with_mode(enter, (true, false));
        Self { enabled, below }
    }
}

impl Drop for NoGrad {
    fn drop(&mut self) {
        let leave = |mode: &Mode| {
            mode.enabled.set(self.enabled);
            mode.below.set(self.below);
        };
        with_mode(leave, ());
    }
}
