//! Lanes: where events of one thread overlap without nesting, they are moved apart, so that every lane nests.
//!
//! Viewers drop or misdraw events that cross others on their track. Writers ask here which lane each event goes
//! on; lane zero is the thread's own track.

use mindprof_model::{EventId, Nanos, Profile, ThreadId};

/// One track of properly nested events: a thread's own, or a spare one beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The thread that the events ran on.
    pub thread: ThreadId,
    /// How many lanes of the thread came before this one.
    pub number: usize,
    /// The events in start order. Any two are apart or one lies within the other.
    pub events: Vec<EventId>,
}

/// Puts the events of a profile on as few lanes as one walk finds, thread by thread.
///
/// ```text
/// thread   a |---------|            lane 0   a |---------|     c |----|
///            b     |---------|      lane 1     b     |---------|
///            c           |----|     c ends after a: beside it, on lane 0
/// ```
pub fn lanes(profile: &Profile) -> Vec<Lane> {
    let mut threads: Vec<Vec<OpenLane>> = Vec::new();
    threads.resize_with(profile.threads().len(), Vec::new);
    for (index, event) in profile.events().iter().enumerate() {
        let lanes = &mut threads[event.thread.index()];
        let (start, end) = (event.start, event.end());
        let fitting = lanes.iter_mut().position(|lane| lane.takes(start, end));
        let lane = fitting.unwrap_or_else(|| {
            lanes.push(OpenLane::default());
            lanes.len() - 1
        });
        lanes[lane].ends.push(end);
        lanes[lane].events.push(EventId::from_index(index));
    }
    let of_thread = |(index, lanes): (usize, Vec<OpenLane>)| {
        let thread = ThreadId::from_index(index);
        let numbered = lanes.into_iter().enumerate();
        numbered.map(move |(number, lane)| Lane {
            thread,
            number,
            events: lane.events,
        })
    };
    threads
        .into_iter()
        .enumerate()
        .flat_map(of_thread)
        .collect()
}

/// A lane while events are put on it.
#[derive(Clone, Debug, Default)]
struct OpenLane {
    /// The ends of the events that are open at the present moment, outermost first.
    ends: Vec<Nanos>,
    events: Vec<EventId>,
}

impl OpenLane {
    /// Closes what has ended and returns whether an event fits into what is still open.
    fn takes(&mut self, start: Nanos, end: Nanos) -> bool {
        while self.ends.pop_if(|open| *open <= start).is_some() {}
        self.ends.last().is_none_or(|open| end <= *open)
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Category, DeviceKind, Event, ProfileBuilder, StringTable, Thread};
    use proptest::prelude::*;

    use super::*;

    fn profile(intervals: &[(usize, u64, u64)]) -> Profile {
        let mut builder = ProfileBuilder::new();
        for native in 0..3 {
            builder.add_thread(Thread {
                process: 1,
                native,
                name: StringTable::EMPTY,
                device: DeviceKind::Cpu,
            });
        }
        for &(thread, start, length) in intervals {
            let thread = ThreadId::from_index(thread);
            let (start, length) = (Nanos(start), Nanos(length));
            let name = StringTable::EMPTY;
            builder.add_event(Event::new(Category::Operator, name, thread, start, length));
        }
        builder.build().unwrap()
    }

    #[test]
    fn nested_events_share_a_lane_and_crossing_ones_do_not() {
        // a |---------|            0..10
        // b     |---------|        4..14
        // c           |----|      11..16
        let profile = profile(&[(0, 0, 10), (0, 4, 10), (0, 11, 5)]);
        let ids = |raw: &[u32]| {
            raw.iter()
                .map(|&id| EventId::from_raw(id))
                .collect::<Vec<_>>()
        };
        let found: Vec<_> = lanes(&profile)
            .into_iter()
            .map(|lane| (lane.number, lane.events))
            .collect();
        assert_eq!(found, [(0, ids(&[0, 2])), (1, ids(&[1]))]);
    }

    proptest! {
        #[test]
        fn every_event_is_on_one_lane_and_every_lane_nests(
            intervals in prop::collection::vec((0_usize..3, 0_u64..60, 0_u64..20), 0..80),
        ) {
            let profile = profile(&intervals);
            let lanes = lanes(&profile);
            let total: usize = lanes.iter().map(|lane| lane.events.len()).sum();
            prop_assert_eq!(total, intervals.len());
            for lane in &lanes {
                prop_assert!(lane.events.is_sorted());
                let events = || lane.events.iter().map(|&id| profile.event(id));
                prop_assert!(events().all(|event| event.thread == lane.thread));
                for (index, outer) in events().enumerate() {
                    for inner in events().skip(index + 1) {
                        let apart = outer.end() <= inner.start;
                        prop_assert!(apart || inner.end() <= outer.end());
                    }
                }
            }
        }
    }
}
