//! Keys that identify the threads of a process, whether they record or not.
//!
//! A framework notes the key of the thread that ran a forward operator, and `assemble` finds the
//! thread by it. Unlike the operating system's ids, a key is never reused and survives a fork.

use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(1);

thread_local! {
    // Relaxed: a plain counter.
    static KEY: u32 = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// The key of a thread of this process. Unlike a native thread id it is never reused, so that a
/// backward node cannot be linked to a thread that has since exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadKey(u32);

impl ThreadKey {
    /// Stands for an unknown thread.
    pub const NONE: Self = Self(0);

    /// Returns the key of the calling thread. Cache it if it is needed often: it takes a
    /// thread-local lookup.
    pub fn current() -> Self {
        Self(KEY.try_with(|key| *key).unwrap_or(0))
    }

    /// Returns the key for a number from [`ThreadKey::to_raw`].
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns the key as a number, for callers that keep it in a word of their own.
    pub const fn to_raw(self) -> u32 {
        self.0
    }
}
