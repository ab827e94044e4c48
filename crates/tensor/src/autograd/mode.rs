//! Whether operators on this thread are tracked, and which number the next node gets.
//!
//! Tracking is off inside of [`NoGrad`] and inside of an operator that has a formula of its own
//! ([`Below`]): what such an operator calls is part of its computation.

use std::cell::Cell;
use std::marker::PhantomData;

use mindprof_record::{ThreadKey, fast_thread_local};

/// What operators of one thread ask.
struct Mode {
    enabled: Cell<bool>,
    below: Cell<bool>,
    sequence: Cell<u32>,
    /// The thread, once it was asked for.
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

/// Asks or changes the mode of this thread. One that is ending has none any more, and is as at
/// first.
#[inline]
fn with_mode<T>(action: impl FnOnce(&Mode) -> T, at_first: T) -> T {
    MODE.try_with(action).unwrap_or(at_first)
}

/// Returns whether operators on this thread are tracked, as far as the caller decides it.
pub fn is_grad_enabled() -> bool {
    with_mode(|mode| mode.enabled.get(), true)
}

/// Turns tracking on this thread on or off and returns whether it was on.
pub fn set_grad_enabled(enabled: bool) -> bool {
    with_mode(|mode| mode.enabled.replace(enabled), true)
}

/// Returns whether an operator that is called now would be tracked.
#[inline]
pub(crate) fn is_tracking() -> bool {
    next_sequence().is_some()
}

/// Returns the number that the next node of this thread will get; none if an operator would not be
/// tracked.
#[inline]
pub(crate) fn next_sequence() -> Option<u32> {
    let ask = |mode: &Mode| {
        let is_tracking = mode.enabled.get() && !mode.below.get();
        is_tracking.then(|| mode.sequence.get())
    };
    with_mode(ask, Some(0))
}

/// Returns the number that the next node of this thread will get, tracked or not.
pub(super) fn upcoming_sequence() -> u32 {
    with_mode(|mode| mode.sequence.get(), 0)
}

/// Which operator a node is of: its number among those of the thread that it ran on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward {
    pub(super) sequence: u32,
    pub(super) thread: ThreadKey,
}

/// Takes the next number of this thread. The highest one means "none" to the recorder and is left
/// out.
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

/// Marks, while it lives, that an operator computes: what it calls is not tracked.
pub(crate) struct Below {
    before: bool,
    /// It is undone on the thread that it was done on.
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

/// Turns tracking off while it lives, also if it was turned off by an operator around it.
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
