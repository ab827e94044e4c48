//! Whether operators on this thread are tracked, and which number the next node gets.
//!
//! Tracking is off inside of [`NoGrad`] and inside of an operator that has a formula of its own
//! ([`Below`]): what such an operator calls is part of its computation.

#![expect(
    unsafe_code,
    reason = "a guard remembers where the variable of its thread is"
)]

use std::cell::Cell;

/// What operators of one thread ask: in one word, so that they ask once.
#[derive(Clone, Copy)]
struct Mode {
    enabled: bool,
    below: bool,
    sequence: u32,
}

thread_local! {
    static MODE: Cell<Mode> = const {
        Cell::new(Mode {
            enabled: true,
            below: false,
            sequence: 0,
        })
    };
}

/// Returns whether operators on this thread are tracked, as far as the caller decides it.
pub fn is_grad_enabled() -> bool {
    MODE.get().enabled
}

/// Turns tracking on this thread on or off and returns whether it was on.
pub fn set_grad_enabled(enabled: bool) -> bool {
    change(|mode| mode.enabled = enabled).enabled
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
    let mode = MODE.get();
    (mode.enabled && !mode.below).then_some(mode.sequence)
}

/// Takes the next number. The highest one means "none" to the recorder and is left out.
pub(super) fn take_sequence() -> u32 {
    change(|mode| mode.sequence = (mode.sequence + 1) % (u32::MAX >> 1)).sequence
}

/// Changes the mode and returns what it was.
#[inline]
fn change(change: impl FnOnce(&mut Mode)) -> Mode {
    MODE.with(|cell| {
        let before = cell.get();
        let mut after = before;
        change(&mut after);
        cell.set(after);
        before
    })
}

/// Marks, while it lives, that an operator computes: what it calls is not tracked.
pub(crate) struct Below {
    /// The mode of the thread. Looked for once: in a library that is loaded at run time that costs
    /// as much as a small operator's bookkeeping. A pointer keeps the guard on its thread.
    mode: *const Cell<Mode>,
    before: bool,
}

impl Below {
    #[inline]
    pub(crate) fn enter() -> Self {
        MODE.with(|cell| {
            let before = cell.get();
            cell.set(Mode {
                below: true,
                ..before
            });
            Self {
                mode: cell,
                before: before.below,
            }
        })
    }
}

impl Drop for Below {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard is dropped on the thread it was made on, whose variable has no
        // destructor and lives as long as the thread.
        let cell = unsafe { &*self.mode };
        cell.set(Mode {
            below: self.before,
            ..cell.get()
        });
    }
}

/// Turns tracking off while it lives, also if it was turned off by an operator around it.
pub(crate) struct NoGrad {
    enabled: bool,
    below: bool,
}

impl NoGrad {
    pub(crate) fn enter() -> Self {
        let Mode { enabled, below, .. } = change(|mode| {
            mode.enabled = false;
            mode.below = false;
        });
        Self { enabled, below }
    }
}

impl Drop for NoGrad {
    fn drop(&mut self) {
        change(|mode| {
            mode.enabled = self.enabled;
            mode.below = self.below;
        });
    }
}
