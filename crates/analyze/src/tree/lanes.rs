//! Lanes: events of one thread that overlap without nesting are moved apart, so that the events of
//! every lane nest.
//!
//! Viewers drop or misdraw events that cross others on their track. Writers of trace files ask
//! [`Lanes`] for the lane of each event; lane zero is the thread's own track.

use std::cmp::Reverse;

use mindprof_model::{Category, Event, EventId, Flags, Nanos, Profile, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The number of overflow tracks of a thread that are tried before another one is opened: enough
/// for real overlaps, and few enough to stay fast for a file in which everything overlaps.
const TRIED_LANES: usize = 64;

/// The lane of each event of a profile.
///
/// Any two events of one lane are either disjoint or nested, which is what trace viewers require of
/// a track. Most profiles need no lane beyond each thread's own, so only the events that were moved
/// are stored.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    overflow: Vec<OverflowTrack>,
    /// The events that are not on their thread's own lane, with the position of the overflow track.
    moved: FxHashMap<EventId, u32>,
}

/// An additional lane of a thread, drawn as a separate track.
///
/// Writers of trace files name such tracks after the thread, so that a reader can put the events
/// back on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverflowTrack {
    /// The thread that the events ran on.
    pub thread: ThreadId,
    /// The number of the thread's lanes before this one, including the thread's own.
    pub number: usize,
}

impl Lanes {
    /// Assigns the events to lanes by their recorded times. See [`Self::build_with`].
    pub fn build(profile: &Profile) -> Self {
        Self::build_with(profile, |event| (event.start, event.end()))
    }

    /// Assigns the events to lanes by the intervals at which they are going to be drawn.
    ///
    /// If a range and a call cross, the range moves and the call stays, so that calls keep their
    /// callers around them. If two ranges or two calls cross, the later one moves.
    ///
    /// ```text
    /// thread   range |-----------|            lane 0   a |----|  b |------|
    ///            a |----|  b |------|         lane 1   range |-----------|
    /// ```
    pub fn build_with(profile: &Profile, interval: impl Fn(&Event) -> (Nanos, Nanos)) -> Self {
        let walk = Walk::new(profile, interval);
        let lanes = walk.place(&FxHashSet::default());
        if lanes.overflow.is_empty() {
            return lanes;
        }
        walk.place(&walk.crossing_ranges())
    }

    /// Returns the overflow tracks, in the order in which they were first needed.
    pub fn overflow(&self) -> &[OverflowTrack] {
        &self.overflow
    }

    /// Returns the position of an event's lane in [`Self::overflow`], or `None` if the event is on
    /// its thread's own lane.
    pub fn moved_to(&self, id: EventId) -> Option<usize> {
        // Most profiles move nothing; skip hashing then.
        if self.moved.is_empty() {
            return None;
        }
        self.moved.get(&id).map(|&lane| lane as usize)
    }
}

/// The events in the order in which they are drawn.
struct Walk<'a, I> {
    profile: &'a Profile,
    interval: I,
    /// The order, if it differs from that of the profile.
    order: Option<Vec<EventId>>,
}

impl<'a, I: Fn(&Event) -> (Nanos, Nanos)> Walk<'a, I> {
    fn new(profile: &'a Profile, interval: I) -> Self {
        let key = |event: &Event| {
            let (start, end) = interval(event);
            (start, Reverse(end))
        };
        let is_sorted = profile.events().is_sorted_by_key(key);
        let order = (!is_sorted).then(|| {
            let mut order: Vec<_> = (0..profile.events().len())
                .map(EventId::from_index)
                .collect();
            order.sort_by_key(|&id| key(profile.event(id)));
            order
        });
        Self {
            profile,
            interval,
            order,
        }
    }

    fn events(&self) -> impl Iterator<Item = (EventId, &'a Event)> {
        let profile = self.profile;
        (0..profile.events().len()).map(move |index| {
            let id = match &self.order {
                Some(order) => order[index],
                None => EventId::from_index(index),
            };
            (id, profile.event(id))
        })
    }

    /// Puts each event on the first lane of its thread that it fits on. Events in `apart` go on
    /// overflow tracks only.
    fn place(&self, apart: &FxHashSet<EventId>) -> Lanes {
        let mut lanes = Lanes::default();
        let threads = self.profile.threads().len();
        let mut own = vec![OpenLane::default(); threads];
        let mut overflow: Vec<OpenLane> = Vec::new();
        let mut overflow_of: Vec<Vec<usize>> = vec![Vec::new(); threads];
        for (id, event) in self.events() {
            let (start, end) = (self.interval)(event);
            if !apart.contains(&id) && own[event.thread.index()].take(start, end) {
                continue;
            }
            let beside = &mut overflow_of[event.thread.index()];
            let tried = beside.len().saturating_sub(TRIED_LANES);
            let mut tried = beside[tried..].iter().copied();
            let fitting = tried.find(|&lane| overflow[lane].take(start, end));
            let lane = fitting.unwrap_or_else(|| {
                beside.push(overflow.len());
                lanes.overflow.push(OverflowTrack {
                    thread: event.thread,
                    number: beside.len(),
                });
                overflow.push(OpenLane { ends: vec![end] });
                overflow.len() - 1
            });
            lanes.moved.insert(id, lane as u32);
        }
        lanes
    }

    /// Returns the ranges that end during a call which began inside them.
    fn crossing_ranges(&self) -> FxHashSet<EventId> {
        let mut crossing = FxHashSet::default();
        let mut threads: Vec<Vec<(Nanos, EventId)>> = Vec::new();
        threads.resize_with(self.profile.threads().len(), Vec::new);
        for (id, event) in self.events() {
            let (start, end) = (self.interval)(event);
            let open = &mut threads[event.thread.index()];
            while open.pop_if(|(open_end, _)| *open_end <= start).is_some() {}
            if !is_range(event) {
                let ends_inside = |(open_end, open): &mut (Nanos, EventId)| {
                    *open_end < end && is_range(self.profile.event(*open))
                };
                while let Some((_, range)) = open.pop_if(ends_inside) {
                    crossing.insert(range);
                }
            }
            if open.last().is_none_or(|(open_end, _)| end <= *open_end) {
                open.push((end, id));
            }
        }
        crossing
    }
}

/// Returns whether an event is a range around calls rather than a call.
fn is_range(event: &Event) -> bool {
    match event.category {
        Category::Annotation | Category::DeviceAnnotation => true,
        Category::Operator
        | Category::PythonFunction
        | Category::Runtime
        | Category::Kernel
        | Category::Other => event.flags.contains(Flags::ASYNC),
    }
}

/// A lane to which events are being added.
#[derive(Clone, Debug, Default)]
struct OpenLane {
    /// The ends of the events that are currently open, outermost first.
    ends: Vec<Nanos>,
}

impl OpenLane {
    /// Adds an event if it fits into the innermost open one. Returns whether it does.
    fn take(&mut self, start: Nanos, end: Nanos) -> bool {
        while self.ends.pop_if(|open| *open <= start).is_some() {}
        let fits = self.ends.last().is_none_or(|open| end <= *open);
        if fits {
            self.ends.push(end);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{DeviceKind, Part, StringTable, Thread};
    use proptest::prelude::*;

    use super::*;

    type Interval = (Category, usize, u64, u64);

    fn profile(intervals: &[Interval]) -> Profile {
        let mut builder = Part::new();
        for native in 0..3 {
            builder.add_thread(Thread {
                process: 1,
                native,
                name: StringTable::EMPTY,
                device: DeviceKind::Cpu,
            });
        }
        for &(category, thread, start, length) in intervals {
            let thread = ThreadId::from_index(thread);
            let (start, length) = (Nanos(start), Nanos(length));
            builder.add_event(Event::new(
                category,
                StringTable::EMPTY,
                thread,
                start,
                length,
            ));
        }
        builder.into_profile().unwrap()
    }

    fn numbers(lanes: &Lanes, count: usize) -> Vec<Option<usize>> {
        (0..count)
            .map(|index| lanes.moved_to(EventId::from_index(index)))
            .collect()
    }

    #[test]
    fn nested_events_share_a_lane_and_crossing_ones_do_not() {
        // a |---------|            0..10
        // b     |---------|        4..14
        // c           |----|      11..16
        let intervals = [(0, 10), (4, 10), (11, 5)];
        let profile = profile(&intervals.map(|(s, l)| (Category::Operator, 0, s, l)));
        let lanes = Lanes::build(&profile);
        assert_eq!(numbers(&lanes, 3), [None, Some(0), None]);
        let (thread, number) = (ThreadId::from_index(0), 1);
        assert_eq!(lanes.overflow(), [OverflowTrack { thread, number }]);
    }

    #[test]
    fn a_range_makes_room_for_the_calls_that_cross_it() {
        // range |-----------|         2..14
        //   a |----|                  0..6
        //   b         |--------|     10..19
        //   inner     |--|           10..12
        let profile = profile(&[
            (Category::PythonFunction, 0, 0, 6),
            (Category::Annotation, 0, 2, 12),
            (Category::PythonFunction, 0, 10, 9),
            (Category::Operator, 0, 10, 2),
        ]);
        let lanes = Lanes::build(&profile);
        assert_eq!(numbers(&lanes, 4), [None, Some(0), None, None]);
    }

    const CATEGORIES: [Category; 3] = [
        Category::Operator,
        Category::Annotation,
        Category::DeviceAnnotation,
    ];

    fn any_interval() -> impl Strategy<Value = Interval> {
        let category = prop::sample::select(&CATEGORIES[..]);
        (category, 0_usize..3, 2_u64..60, 0_u64..20)
    }

    /// Returns the drawn interval of an event; ranges of devices are widened.
    fn drawn(event: &Event) -> (Nanos, Nanos) {
        let margin = Nanos(u64::from(event.category == Category::DeviceAnnotation));
        (event.start.saturating_sub(margin), event.end() + margin)
    }

    proptest! {
        #[test]
        fn every_lane_nests(intervals in prop::collection::vec(any_interval(), 0..60)) {
            let profile = profile(&intervals);
            let lanes = Lanes::build_with(&profile, drawn);
            let lane_of = |index: usize| {
                let thread = profile.events()[index].thread;
                let track = lanes.moved_to(EventId::from_index(index));
                prop_assert!(track.is_none_or(|track| lanes.overflow()[track].thread == thread));
                Ok((thread, track))
            };
            for first in 0..intervals.len() {
                for second in first + 1..intervals.len() {
                    if lane_of(first)? != lane_of(second)? {
                        continue;
                    }
                    let [a, b] = [first, second].map(|index| drawn(&profile.events()[index]));
                    let apart = a.1 <= b.0 || b.1 <= a.0;
                    let nested = (a.0 <= b.0 && b.1 <= a.1) || (b.0 <= a.0 && a.1 <= b.1);
                    prop_assert!(apart || nested, "{a:?} {b:?}");
                }
            }
        }
    }
}
