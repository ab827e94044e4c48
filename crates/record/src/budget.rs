//! The byte budget of the recording: memory is charged before it is allocated, and nothing is
//! allocated beyond the limit.
//!
//! A recording that keeps its last part releases the memory of its oldest records. Names, inputs
//! and stacks are never released, so each side has a share that the other cannot take.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

// Relaxed: the counters guard no other memory; each charge is one atomic update.
static LIMIT: AtomicUsize = AtomicUsize::new(0);
/// All bytes that are charged.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The bytes among them that are charged for records.
static OF_RECORDS: AtomicUsize = AtomicUsize::new(0);
/// Whether records and everything else have shares of their own.
static IS_SHARED: AtomicBool = AtomicBool::new(false);

/// Sets the limit of the recording. While several windows are open, the recorder passes the largest
/// of their budgets.
pub(crate) fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Sets whether records have at most three quarters of the limit and everything else at most a half
/// of it.
pub(crate) fn set_shared(is_shared: bool) {
    IS_SHARED.store(is_shared, Ordering::Relaxed);
}

/// Resets the counters when a new recording begins.
pub(crate) fn reset() {
    USED.store(0, Ordering::Relaxed);
    OF_RECORDS.store(0, Ordering::Relaxed);
}

/// Charges up to `wanted` bytes, in whole `unit`s, and returns how many bytes were granted.
pub(crate) fn charge(wanted: usize, unit: usize) -> usize {
    let others = USED.load(Ordering::Relaxed).saturating_sub(of_records());
    charge_within(wanted.min(share(1, 2).saturating_sub(others)), unit)
}

/// Charges bytes for records, as [`charge`] does for everything else.
pub(crate) fn charge_records(wanted: usize, unit: usize) -> usize {
    let granted = charge_within(wanted.min(share(3, 4).saturating_sub(of_records())), unit);
    OF_RECORDS.fetch_add(granted, Ordering::Relaxed);
    granted
}

/// Releases bytes that were charged for records.
pub(crate) fn release_records(bytes: usize) {
    OF_RECORDS.fetch_sub(bytes, Ordering::Relaxed);
    USED.fetch_sub(bytes, Ordering::Relaxed);
}

/// Releases bytes that were charged for something else.
pub(crate) fn release(bytes: usize) {
    USED.fetch_sub(bytes, Ordering::Relaxed);
}

fn of_records() -> usize {
    OF_RECORDS.load(Ordering::Relaxed)
}

/// Returns a share of the limit. Threads that charge at the same time may exceed it a little, but
/// never the limit.
fn share(parts: usize, of: usize) -> usize {
    if IS_SHARED.load(Ordering::Relaxed) {
        LIMIT.load(Ordering::Relaxed) / of * parts
    } else {
        usize::MAX
    }
}

fn charge_within(wanted: usize, unit: usize) -> usize {
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

    #[test]
    fn neither_records_nor_names_take_all_of_a_shared_limit() {
        set_limit(400);
        set_shared(true);
        reset();
        assert_eq!(charge(400, 1), 200);
        assert_eq!(charge_records(400, 1), 200, "the rest");
        release_records(200);
        assert_eq!(charge(1, 1), 0);
        reset();
        assert_eq!(charge_records(400, 1), 300);
        assert_eq!(charge(400, 1), 100, "the rest");
        set_shared(false);
    }
}
