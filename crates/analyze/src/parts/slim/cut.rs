//! The options of a cut and the report of what it removed.

use mindprof_model::{Nanos, ThreadId};

/// What is kept of a profile. The default keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// From when to when, since the profile's reference time. Events that cross an edge are cut
    /// there.
    pub window: Option<(Nanos, Nanos)>,
    /// These threads, and what they asked devices for.
    pub threads: Option<Vec<ThreadId>>,
    /// Events that took at least this long.
    pub shortest: Nanos,
    /// At most this many events: the longest ones.
    pub most_events: Option<usize>,
    /// No memory records.
    pub without_memory: bool,
    /// No records of foreign kinds, such as counters.
    pub without_foreign: bool,
}

/// How many events were left out, by the first reason that there was, and what else changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutReport {
    /// How many events there were.
    pub events: u64,
    /// How many were kept.
    pub kept: u64,
    /// How many lie outside of the window.
    pub outside: u64,
    /// How many are of other threads.
    pub other_threads: u64,
    /// How many are too short.
    pub too_short: u64,
    /// How many are not among the longest.
    pub too_many: u64,
    /// How many of those that were kept cross an edge of the window and end there.
    pub clipped: u64,
    /// How many memory records there were.
    pub memory: u64,
    /// How many of them were kept.
    pub memory_kept: u64,
    /// How many records of foreign kinds there were.
    pub foreign: u64,
    /// How many of them were kept.
    pub foreign_kept: u64,
}
