//! Replays without some work, several at once: what each of them would save.

use std::ops::Range;

use mindprof_model::EventId;

use super::host_tasks::HostTasks;
use super::{Change, Replay, Replayed, Timing};
use crate::beside::each;

/// The number of replays that are made in one pass over the tasks.
const AT_ONCE: usize = 8;

/// Sets of events, each of which is removed in a replay of its own.
#[derive(Clone, Debug)]
pub(crate) struct Removals {
    /// By event, a bit for each set that it is in.
    sets: Vec<u64>,
}

impl Removals {
    /// The largest number of sets.
    pub(crate) const MOST: usize = 64;

    pub(crate) fn new(events: usize) -> Self {
        Self {
            sets: vec![0; events],
        }
    }

    /// Adds an event to a set.
    pub(crate) fn remove(&mut self, set: usize, event: EventId) {
        self.sets[event.index()] |= 1 << set;
    }
}

/// Some of the sets, beginning with this one.
struct From<'a>(&'a Removals, usize);

impl From<'_> {
    /// Returns a bit for each set that an event is in.
    fn sets(&self, event: u32) -> u64 {
        self.0.sets.get(event as usize).copied().unwrap_or(0) >> self.1
    }
}

impl Change<AT_ONCE> for From<'_> {
    fn factors(&self, event: u32) -> [f64; AT_ONCE] {
        let sets = self.sets(event);
        if sets == 0 {
            return [1.0; AT_ONCE];
        }
        std::array::from_fn(|set| if sets >> set & 1 == 0 { 1.0 } else { 0.0 })
    }

    fn host_times(&self, host: &HostTasks, tasks: Range<u32>, timing: Timing) -> [u64; AT_ONCE] {
        let mut whole = 0;
        let mut removed = [0; AT_ONCE];
        for (event, own) in host.times(tasks, timing) {
            whole += own;
            let sets = self.sets(event);
            for (set, removed) in removed.iter_mut().enumerate() {
                *removed += own & 0_u64.wrapping_sub(sets >> set & 1);
            }
        }
        removed.map(|removed| whole - removed)
    }
}

impl Replay {
    /// Replays the program without each of the first `count` sets.
    pub(crate) fn without(
        &self,
        removals: &Removals,
        count: usize,
        timing: Timing,
    ) -> Vec<Replayed> {
        let firsts: Vec<usize> = (0..count.min(Removals::MOST)).step_by(AT_ONCE).collect();
        let replayed = each(&firsts, |&first| self.run(&From(removals, first), timing));
        let mut replayed: Vec<Replayed> = replayed.into_iter().flatten().collect();
        replayed.truncate(count);
        replayed
    }
}
