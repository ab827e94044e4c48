//! Whether operators on this thread are tracked, and which number the next node gets.
//!
//! Tracking is off inside of [`NoGrad`] and inside of an operator that has a formula of its own ([`Below`]): what such an
//! operator calls is part of its computation.

use std::cell::Cell;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
    static BELOW: Cell<bool> = const { Cell::new(false) };
    static SEQUENCE: Cell<u32> = const { Cell::new(0) };
}

/// Returns whether operators on this thread are tracked, as far as the caller decides it.
pub fn is_grad_enabled() -> bool {
    ENABLED.get()
}

/// Turns tracking on this thread on or off and returns whether it was on.
pub fn set_grad_enabled(enabled: bool) -> bool {
    ENABLED.replace(enabled)
}

/// Returns whether an operator that is called now would be tracked.
#[inline]
pub(crate) fn is_tracking() -> bool {
    ENABLED.get() && !BELOW.get()
}

/// Returns the number that the next node of this thread will get.
pub(crate) fn next_sequence() -> u32 {
    SEQUENCE.get()
}

/// Takes the next number. The highest one means "none" to the recorder and is left out.
pub(super) fn take_sequence() -> u32 {
    let number = SEQUENCE.get();
    SEQUENCE.set((number + 1) % (u32::MAX >> 1));
    number
}

/// Marks, while it lives, that an operator computes: what it calls is not tracked.
pub(crate) struct Below {
    before: bool,
}

impl Below {
    #[inline]
    pub(crate) fn enter() -> Self {
        Self {
            before: BELOW.replace(true),
        }
    }
}

impl Drop for Below {
    #[inline]
    fn drop(&mut self) {
        BELOW.set(self.before);
    }
}

/// Turns tracking off while it lives, also if it was turned off by an operator around it.
pub(crate) struct NoGrad {
    enabled: bool,
    below: bool,
}

impl NoGrad {
    pub(crate) fn enter() -> Self {
        Self {
            enabled: ENABLED.replace(false),
            below: BELOW.replace(false),
        }
    }
}

impl Drop for NoGrad {
    fn drop(&mut self) {
        ENABLED.set(self.enabled);
        BELOW.set(self.below);
    }
}
