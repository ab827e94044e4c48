//! Sorts the events of a trace into the order of a profile, and checks how they nest.

use std::cmp::Reverse;

use mindprof_model::{Category, Event, Flags, Nanos, PassthroughArgs, PassthroughKind};

/// Tracks whether events arrive in the order of a profile. Checking them all again at the end would
/// cost a twentieth of the time to read a trace.
#[derive(Default)]
pub(super) struct IsOrdered {
    /// The start and end of the last event.
    last: Option<(i64, i64)>,
    /// Whether the events must be checked again: one arrived out of order or changed.
    is_unknown: bool,
}

impl IsOrdered {
    /// Adds the next event.
    #[inline]
    pub(super) fn add(&mut self, start: i64, duration: Nanos) {
        let end = start.saturating_add_unsigned(duration.0);
        if let Some((last_start, last_end)) = self.last {
            self.is_unknown |= (start, Reverse(end)) < (last_start, Reverse(last_end));
        }
        self.last = Some((start, end));
    }

    /// Records that events have changed.
    pub(super) const fn forget(&mut self) {
        self.is_unknown = true;
    }

    /// Returns whether `events` are in order. Unless [`Self::is_known`], their starts must already
    /// be relative to time zero, because earlier they hold the bits of signed numbers.
    pub(super) fn of(&self, events: &[Event]) -> bool {
        !self.is_unknown || events.is_sorted_by_key(key)
    }

    /// Returns whether the events are known to be in order.
    pub(super) const fn is_known(&self) -> bool {
        !self.is_unknown
    }
}

/// The sort key of events in a profile: by start, longest first.
fn key(event: &Event) -> (Nanos, Reverse<Nanos>) {
    (event.start, Reverse(event.end()))
}

/// Returns the permutation that sorts the events. Those with equal keys keep the order of the file.
pub(crate) fn find(events: &[Event]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..events.len() as u32).collect();
    // A trace consists of sorted runs, which this sort detects and merges.
    order.sort_by_key(|&index| key(&events[index as usize]));
    order
}

/// Permutes events and their passthrough data in place: position `i` receives the element at
/// `order[i]`.
pub(crate) fn apply(mut order: Vec<u32>, events: &mut [Event], passthrough: &mut PassthroughArgs) {
    for kind in [
        PassthroughKind::Category,
        PassthroughKind::Fields,
        PassthroughKind::Arguments,
    ] {
        passthrough.reorder(kind, &order);
    }
    for begin in 0..order.len() {
        let mut to = begin;
        loop {
            let from = std::mem::replace(&mut order[to], to as u32) as usize;
            if from == begin || from == to {
                break;
            }
            events.swap(to, from);
            to = from;
        }
    }
}

/// Counts events that end after an event of the same kind and track in which they began.
///
/// ```text
/// a     |---------|
/// b          |---------|     ends after a: crossing
/// c              |--|        inside b
/// ```
///
/// In a trace with whole microseconds, ends are accurate to `resolution` nanoseconds: an end that
/// exceeds its parent's by at most that is moved back to it. Threads that the file spreads over
/// overflow tracks (`whole` is false) are skipped, because their events may cross.
pub(super) struct Nesting {
    whole: Vec<bool>,
    resolution: u64,
    /// The ends of the open events, by track and kind.
    open: Vec<[Vec<Nanos>; KINDS]>,
    pub(super) crossing: u64,
    /// The number of ends that were moved back.
    pub(super) shortened: u64,
}

impl Nesting {
    pub(super) fn new(whole: Vec<bool>, resolution: u64) -> Self {
        Self {
            open: vec![Default::default(); whole.len()],
            whole,
            resolution,
            crossing: 0,
            shortened: 0,
        }
    }

    /// Checks the next event in order.
    #[inline]
    pub(super) fn add(&mut self, event: &mut Event) {
        let is_apart = event.flags.contains(Flags::ASYNC) || event.flags.contains(Flags::HIDDEN);
        if is_apart || !self.whole[event.thread.index()] {
            return;
        }
        let stack = &mut self.open[event.thread.index()][kind(event.category)];
        while stack.last().is_some_and(|&end| end <= event.start) {
            stack.pop();
        }
        if let Some(&end) = stack.last() {
            let beyond = event.end().saturating_sub(end).0;
            if beyond > self.resolution {
                self.crossing += 1;
            } else if beyond > 0 {
                self.shortened += 1;
                event.duration = event.duration.saturating_sub(Nanos(beyond));
            }
        }
        stack.push(event.end());
    }
}

const KINDS: usize = 3;

/// Returns the group of categories that nest with each other. Python functions start and end
/// annotations, and device work starts before its annotations, so each of these is a group of its
/// own.
const fn kind(category: Category) -> usize {
    match category {
        Category::Operator
        | Category::Annotation
        | Category::Runtime
        | Category::Kernel
        | Category::Other => 0,
        Category::PythonFunction => 1,
        Category::DeviceAnnotation => 2,
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{LinkColumns, Links, StringTable, ThreadId};
    use proptest::prelude::*;

    use super::*;

    fn event(start: u64, duration: u64) -> Event {
        let (name, thread) = (StringTable::EMPTY, ThreadId::from_raw(0));
        Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(start),
            Nanos(duration),
        )
    }

    proptest! {
        #[test]
        fn links_stay_with_their_events(times in prop::collection::vec((0..20_u64, 0..20_u64), 0..40)) {
            let mut events: Vec<_> = times.iter().map(|&(start, duration)| event(start, duration)).collect();
            let mut links = LinkColumns::default();
            for index in 0..times.len() {
                links.set(index, Links::new(index as u32, 0));
            }
            let order = find(&events);
            let links = links.reordered(&order);
            apply(order, &mut events, &mut PassthroughArgs::default());
            let mut expected: Vec<_> = times.iter().zip(0_u32..).collect();
            expected.sort_by_key(|&(&(start, duration), _)| (start, Reverse(duration)));
            let found: Vec<_> = events.iter().enumerate().map(|(index, event)| ((event.start.0, event.duration.0), links.at(index).external)).collect();
            let expected: Vec<_> = expected.into_iter().map(|(&times, index)| (times, index)).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn order_is_found_out_as_events_come(times in prop::collection::vec((0..4_u64, 0..4_u64), 0..5)) {
            let events: Vec<_> = times.iter().map(|&(start, duration)| event(start, duration)).collect();
            let mut is_ordered = IsOrdered::default();
            for event in &events {
                is_ordered.add(event.start.0 as i64, event.duration);
            }
            prop_assert_eq!(is_ordered.is_known(), events.is_sorted_by_key(key));
            prop_assert_eq!(is_ordered.of(&events), is_ordered.is_known());
        }
    }

    fn nest(events: &mut [Event], resolution: u64) -> (u64, u64) {
        let mut nesting = Nesting::new(vec![true], resolution);
        for event in events {
            nesting.add(event);
        }
        (nesting.crossing, nesting.shortened)
    }

    /// ```text
    /// 0    10   20   30
    /// |---------|
    ///      |---------|     crossing
    ///        |--|          inside
    /// ```
    #[test]
    fn an_end_beyond_the_parents_is_crossing() {
        let mut events = [event(0, 20), event(10, 20), event(14, 6)];
        assert_eq!(nest(&mut events, 0), (1, 0));
        assert_eq!(events[1].duration, Nanos(20));
        assert_eq!(nest(&mut events, 10), (0, 1));
        assert_eq!(events[1].duration, Nanos(10));
    }

    #[test]
    fn python_functions_may_cross_annotations() {
        let mut events = [event(0, 20), event(10, 20)];
        events[0].category = Category::PythonFunction;
        assert_eq!(nest(&mut events, 0), (0, 0));
    }
}
