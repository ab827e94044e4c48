//! Puts the events of a trace into the order of a profile, and looks at how they lie in each other.

use std::cmp::Reverse;

use mindprof_model::{Category, Event, ExtraKind, Extras, Flags, Links, Nanos};

/// What the events of a profile are ordered by: their start, longest first.
pub(super) fn key(event: &Event) -> (Nanos, Reverse<Nanos>) {
    (event.start, Reverse(event.end()))
}

/// The key that is before all others.
pub(super) const FIRST: (Nanos, Reverse<Nanos>) = (Nanos::ZERO, Reverse(Nanos(u64::MAX)));

/// Finds the order by key; of equals, the file's order counts.
pub(super) fn find(events: &[Event]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..events.len() as u32).collect();
    // A trace is made of runs that are sorted: this sort finds and merges them.
    order.sort_by_key(|&index| key(&events[index as usize]));
    order
}

/// Moves what stands at `order[i]` to `i` in place, one cycle of places after another.
pub(super) fn apply(
    mut order: Vec<u32>,
    events: &mut [Event],
    links: &mut [Links],
    extras: &mut Extras,
) {
    for kind in [ExtraKind::Category, ExtraKind::Fields, ExtraKind::Arguments] {
        extras.reorder(kind, &order);
    }
    for begin in 0..order.len() {
        let mut to = begin;
        loop {
            let from = std::mem::replace(&mut order[to], to as u32) as usize;
            if from == begin || from == to {
                break;
            }
            events.swap(to, from);
            if !links.is_empty() {
                links.swap(to, from);
            }
            to = from;
        }
    }
}

/// Counts events that end after one of their kind that they began in, on the same track.
///
/// ```text
/// a     |---------|
/// b          |---------|     ends after a: crossing
/// c              |--|        inside b
/// ```
///
/// In a trace of whole microseconds an end is only known to `resolution` nanoseconds: one that lies
/// that little behind its parent's is drawn back to it. Tracks that are not `whole` are not looked
/// at: the file holds what crosses there apart.
pub(super) fn nest(events: &mut [Event], whole: &[bool], resolution: u64) -> u64 {
    let mut crossing = 0;
    let mut open: Vec<[Vec<Nanos>; KINDS]> = vec![Default::default(); whole.len()];
    for event in events {
        let is_apart = event.flags.contains(Flags::ASYNC) || event.flags.contains(Flags::HIDDEN);
        if is_apart || !whole[event.thread.index()] {
            continue;
        }
        let stack = &mut open[event.thread.index()][kind(event.category)];
        while stack.last().is_some_and(|&end| end <= event.start) {
            stack.pop();
        }
        if let Some(&end) = stack.last() {
            let beyond = event.end().saturating_sub(end).0;
            if beyond > resolution {
                crossing += 1;
            } else {
                event.duration = event.duration.saturating_sub(Nanos(beyond));
            }
        }
        stack.push(event.end());
    }
    crossing
}

const KINDS: usize = 3;

/// Returns which events nest with one of this category. Python functions open and close
/// annotations, and devices begin ahead of what annotates them, so each of these stands by itself.
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
    use mindprof_model::{StringTable, ThreadId};
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
            let mut links: Vec<_> = (0..times.len() as u32).map(|index| Links::new(index, 0)).collect();
            apply(find(&events), &mut events, &mut links, &mut Extras::default());
            let mut expected: Vec<_> = times.iter().zip(0_u32..).collect();
            expected.sort_by_key(|&(&(start, duration), _)| (start, Reverse(duration)));
            let found: Vec<_> = events.iter().zip(&links).map(|(event, links)| ((event.start.0, event.duration.0), links.external)).collect();
            let expected: Vec<_> = expected.into_iter().map(|(&times, index)| (times, index)).collect();
            prop_assert_eq!(found, expected);
        }
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
        assert_eq!(nest(&mut events, &[true], 0), 1);
        assert_eq!(events[1].duration, Nanos(20));
        assert_eq!(nest(&mut events, &[true], 10), 0);
        assert_eq!(events[1].duration, Nanos(10));
    }

    #[test]
    fn python_functions_may_cross_annotations() {
        let mut events = [event(0, 20), event(10, 20)];
        events[0].category = Category::PythonFunction;
        assert_eq!(nest(&mut events, &[true], 0), 0);
    }
}
