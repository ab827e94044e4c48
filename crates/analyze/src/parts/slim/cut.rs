//! The options of a cut and the report of what it removed.

use mindprof_model::{Nanos, ThreadId};

/// The conditions under which parts of a profile are kept.
///
/// Large recordings do not fit into viewers; a cut makes them small enough to open or to send. All
/// conditions must hold for an event to be kept. The default keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Keep the time from the first to the second, since the profile's reference time. Events that
    /// cross an edge are clipped there.
    pub window: Option<(Nanos, Nanos)>,
    /// Keep what starts within one of these times, which are in order and apart. Nothing is clipped
    /// at their edges.
    pub within: Option<Vec<(Nanos, Nanos)>>,
    /// Keep these threads, and the device work that they launched.
    pub threads: Option<Vec<ThreadId>>,
    /// Keep events that took at least this long.
    pub shortest: Nanos,
    /// Keep at most this many events, the longest ones.
    pub most_events: Option<usize>,
    /// Remove memory records.
    pub without_memory: bool,
    /// Remove events of unknown kinds, such as counters.
    pub without_foreign: bool,
}

impl Cut {
    /// Returns whether a moment is within the times to keep, if there are any.
    pub(super) fn is_within(&self, moment: Nanos) -> bool {
        self.within.as_ref().is_none_or(|times| {
            let after = times.partition_point(|&(begin, _)| begin <= moment);
            after > 0 && moment < times[after - 1].1
        })
    }
}

/// The counts of a cut: how much was kept, and how many events were removed for which reason.
///
/// An event that several conditions exclude counts for the first of them, so that the counts add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutReport {
    /// The number of events before the cut.
    pub events: u64,
    /// The number of events kept.
    pub kept: u64,
    /// The number of events outside the window or the times to keep.
    pub outside: u64,
    /// The number of events on other threads.
    pub other_threads: u64,
    /// The number of events that are too short.
    pub too_short: u64,
    /// The number of events that are not among the longest.
    pub too_many: u64,
    /// The number of kept events that were clipped at an edge of the window.
    pub clipped: u64,
    /// The number of memory records before the cut.
    pub memory: u64,
    /// The number of memory records kept.
    pub memory_kept: u64,
    /// The number of events of unknown kinds before the cut.
    pub foreign: u64,
    /// The number of events of unknown kinds kept.
    pub foreign_kept: u64,
}
