//! The order in which CPU scopes began and ended, across threads.
//!
//! The writer of execution traces replays it. Scopes nest by time as in the event tree, but no
//! duplicates are merged.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use mindprof_model::{Category, DeviceKind, EventId, Nanos, Profile};

/// The beginning or end of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionStep {
    /// The scope begins, inside those of its thread that have not ended.
    Begin(EventId),
    /// The scope ends.
    End(EventId),
}

/// Returns the beginnings and ends of operators, backward nodes and ranges on the CPU, in time
/// order.
///
/// ```text
/// thread 1   a |---------|          Begin a, Begin c, Begin b, End b, End a, End c
///            b     |--|
/// thread 2   c   |----------|
/// ```
pub fn execution(profile: &Profile) -> Vec<ExecutionStep> {
    let mut threads: Vec<Nesting> = Vec::new();
    threads.resize_with(profile.threads().len(), Nesting::default);
    for (index, event) in profile.events().iter().enumerate() {
        let is_scope = matches!(event.category, Category::Operator | Category::Annotation);
        let device = profile.threads()[event.thread.index()].device;
        if is_scope && device == DeviceKind::Cpu {
            let id = EventId::from_index(index);
            threads[event.thread.index()].begin(id, event.start, event.end());
        }
    }
    let mut steps: Vec<VecDeque<_>> = threads.into_iter().map(Nesting::finish).collect();
    let first = |steps: &VecDeque<(Nanos, ExecutionStep)>| steps.front().map(|step| step.0);
    let mut next: BinaryHeap<Reverse<(Nanos, usize)>> = steps
        .iter()
        .enumerate()
        .filter_map(|(thread, steps)| Some(Reverse((first(steps)?, thread))))
        .collect();
    let mut merged = Vec::new();
    while let Some(Reverse((_, thread))) = next.pop() {
        merged.extend(steps[thread].pop_front().map(|(_, step)| step));
        next.extend(first(&steps[thread]).map(|time| Reverse((time, thread))));
    }
    merged
}

/// The steps of one thread.
#[derive(Default)]
struct Nesting {
    open: Vec<(EventId, Nanos)>,
    steps: VecDeque<(Nanos, ExecutionStep)>,
}

impl Nesting {
    fn begin(&mut self, id: EventId, start: Nanos, end: Nanos) {
        while self.open.last().is_some_and(|(_, outer)| *outer < end) {
            self.end_innermost();
        }
        self.steps.push_back((start, ExecutionStep::Begin(id)));
        self.open.push((id, end));
    }

    fn end_innermost(&mut self) {
        if let Some((id, end)) = self.open.pop() {
            self.steps.push_back((end, ExecutionStep::End(id)));
        }
    }

    fn finish(mut self) -> VecDeque<(Nanos, ExecutionStep)> {
        while !self.open.is_empty() {
            self.end_innermost();
        }
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Event, Part, Thread};

    use super::*;

    #[test]
    fn steps_of_threads_are_merged_by_time() {
        let mut part = Part::new();
        let name = part.strings.intern("x");
        let threads = [1, 2].map(|native| {
            part.add_thread(Thread {
                process: 1,
                native,
                name,
                device: DeviceKind::Cpu,
            })
        });
        for (thread, start, end) in [(0, 0, 100), (1, 20, 130), (0, 40, 70)] {
            part.add_event(Event::new(
                Category::Operator,
                name,
                threads[thread],
                Nanos(start),
                Nanos(end - start),
            ));
        }
        let profile = part.into_profile().expect("it holds what it names");
        let [a, c, b] = [0, 1, 2].map(EventId::from_index);
        let (begin, end) = (ExecutionStep::Begin, ExecutionStep::End);
        assert_eq!(
            execution(&profile),
            [begin(a), begin(c), begin(b), end(b), end(a), end(c)]
        );
    }
}
