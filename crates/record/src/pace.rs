//! The pace of recording on this machine: the time of a short loop of the work that recording a
//! scope takes.
//!
//! The conclusions subtract the profiler's own cost, which was measured on one machine. A slower
//! one, or an unoptimized build, records more slowly, which the ratio of the two paces tells. The
//! loop touches no recording, so it may run at any time.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use mindprof_model::Nanos;
use rustc_hash::FxHashMap;

use crate::clock::ticks;
use crate::raw::Record;

/// The number of scopes of one round.
const SCOPES: u64 = 64;

/// The number of rounds. The fastest counts, since others were interrupted or found cold caches.
const ROUNDS: usize = 12;

/// The number of inputs of each scope, in words of an input list.
const INPUTS: usize = 8;

/// Returns the time that recording a scope takes on this machine, at least one nanosecond.
///
/// The first call of the process measures it, in some tens of microseconds. It is not the cost of
/// any particular scope, but grows and shrinks with all of them.
pub fn recording_pace() -> Nanos {
    // Relaxed: threads that measure at once may publish either result. A cell that others wait for
    // would leave a forked child waiting.
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known > 0 {
        return Nanos(known);
    }
    let pace = measure();
    KNOWN.store(pace.0, Ordering::Relaxed);
    pace
}

fn measure() -> Nanos {
    let mut scratch = Scratch::new();
    let rounds = (0..ROUNDS).map(|_| {
        let start = std::time::Instant::now();
        (0..SCOPES).for_each(|scope| scratch.record(black_box(scope)));
        start.elapsed().as_nanos() as u64
    });
    let fastest = rounds.min().expect("there are rounds");
    Nanos((fastest / SCOPES).max(1))
}

/// Stands for the buffer of a thread: input lists that are known, and records.
struct Scratch {
    inputs: FxHashMap<Box<[u64]>, u32>,
    words: Vec<u64>,
    records: Vec<Record>,
}

impl Scratch {
    fn new() -> Self {
        let lists = (0..SCOPES).map(|scope| (list(scope).collect(), scope as u32));
        Self {
            inputs: lists.collect(),
            words: Vec::with_capacity(INPUTS),
            records: Vec::with_capacity(SCOPES as usize),
        }
    }

    /// Does the work of a scope: looks up its inputs, reads the clock twice and appends a record.
    #[inline(never)]
    fn record(&mut self, scope: u64) {
        self.words.clear();
        self.words.extend(list(scope));
        let inputs = self.inputs.get(self.words.as_slice()).copied();
        let start = ticks();
        if self.records.len() == SCOPES as usize {
            self.records.clear();
        }
        self.records.push(black_box(Record {
            start,
            end: ticks(),
            name: scope as u32,
            inputs: inputs.unwrap_or(0),
            stack: 0,
            sequence: Record::NO_SEQUENCE,
        }));
    }
}

/// Returns the input list of a scope.
fn list(scope: u64) -> impl Iterator<Item = u64> {
    (0..INPUTS as u64).map(move |input| black_box(scope * input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_measured_once() {
        let pace = recording_pace();
        assert!(pace > Nanos::ZERO);
        assert_eq!(recording_pace(), pace);
    }

    #[test]
    fn the_scratch_never_grows() {
        let mut scratch = Scratch::new();
        (0..3 * SCOPES).for_each(|scope| scratch.record(scope % SCOPES));
        assert_eq!(scratch.records.len(), SCOPES as usize);
        assert!(
            scratch
                .records
                .iter()
                .all(|record| u64::from(record.inputs) < SCOPES)
        );
    }
}
