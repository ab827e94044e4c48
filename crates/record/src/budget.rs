//! The byte budget of the recording: memory is charged before it is allocated, and nothing is
//! allocated beyond the limit.
//!
//! The memory of a recording is only released when the recording ends, so one counter is enough.

use std::sync::atomic::{AtomicUsize, Ordering};

// Relaxed: the counters guard no other memory; each charge is one atomic update.
static LIMIT: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);

/// Sets the limit of the recording. While several windows are open, the recorder passes the largest
/// of their budgets.
pub(crate) fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Resets the counter when a new recording begins.
pub(crate) fn reset() {
    USED.store(0, Ordering::Relaxed);
}

/// Charges up to `wanted` bytes, in whole `unit`s, and returns how many bytes were granted.
pub(crate) fn charge(wanted: usize, unit: usize) -> usize {
    let limit = LIMIT.load(Ordering::Relaxed);
    let grant = |used: usize| {
        let free = limit.saturating_sub(used);
        wanted.min(free) / unit * unit
    };
    let charged = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        Some(used + grant(used))
    });
    charged.map_or(0, grant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_stop_at_the_limit_in_whole_units() {
        set_limit(100);
        reset();
        assert_eq!(charge(64, 32), 64);
        assert_eq!(charge(64, 32), 32, "36 bytes are left, which is one unit");
        assert_eq!(charge(64, 32), 0);
        reset();
        assert_eq!(charge(32, 32), 32);
    }
}
