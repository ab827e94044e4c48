//! Numbers that tell the threads of a process apart, whether they record or not.
//!
//! A host notes the key of the thread that a forward operator ran on; `assemble` finds the thread
//! by it. Unlike the operating system's ids a key is never used twice and survives a fork.

use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(1);

thread_local! {
    // Relaxed: a plain count.
    static KEY: u32 = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// The key of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadKey(u32);

impl ThreadKey {
    /// Stands for a thread that is not known.
    pub const NONE: Self = Self(0);

    /// Returns the key of the calling thread. Worth remembering: it takes a look-up.
    pub fn current() -> Self {
        Self(KEY.try_with(|key| *key).unwrap_or(0))
    }

    /// Returns the key that [`ThreadKey::to_raw`] gave a number for.
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns the key as a number, for hosts that keep it in a word of their own.
    pub const fn to_raw(self) -> u32 {
        self.0
    }
}
