//! Batches of events, whose ranges of ids and times are tracked as they are added.

use crate::{Event, InputsId, Nanos, Part, ThreadId};

/// Many events for a [`Part`]. It tracks the largest ids and the order of the events as they are
/// added, so that checking a part needs no second pass over all of them.
#[derive(Clone, Debug, Default)]
pub struct EventBatch {
    pub(crate) events: Vec<Event>,
    pub(crate) extremes: Extremes,
}

impl EventBatch {
    /// Creates a batch with room for so many events.
    pub fn with_capacity(events: usize) -> Self {
        Self {
            events: Vec::with_capacity(events),
            extremes: Extremes::default(),
        }
    }

    /// Creates a batch of existing events after `settle` has changed each of them, in one pass.
    pub fn settled(mut events: Vec<Event>, mut settle: impl FnMut(&mut Event)) -> Self {
        let mut extremes = Extremes::default();
        for event in &mut events {
            settle(event);
            extremes.add(event);
        }
        Self { events, extremes }
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Appends the events of another batch. An empty batch takes them over without a copy.
    pub(crate) fn append(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        self.events.reserve(other.len());
        for event in other.events {
            self.push(event);
        }
    }

    /// Replaces the threads of the events.
    pub(crate) fn map_threads(&mut self, map: impl Fn(ThreadId) -> ThreadId) {
        let events = std::mem::take(&mut self.events);
        *self = Self::settled(events, |event| event.thread = map(event.thread));
    }

    /// Sets the inputs of the event at `index`.
    pub(crate) fn set_inputs(&mut self, index: usize, inputs: InputsId) {
        self.events[index].inputs = inputs;
        self.extremes.inputs = self.extremes.inputs.max(inputs.to_raw());
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.extremes.add(&event);
        self.events.push(event);
    }
}

impl From<Vec<Event>> for EventBatch {
    fn from(events: Vec<Event>) -> Self {
        Self::settled(events, |_| ())
    }
}

/// Maxima over a batch of events. They prove a part sound in constant time; single events are only
/// checked if they do not.
#[derive(Clone, Debug)]
pub(crate) struct Extremes {
    pub(crate) name: u32,
    pub(crate) thread: u32,
    pub(crate) stack: u32,
    pub(crate) inputs: u32,
    pub(crate) last_end: u64,
    /// Whether some end overflows the last nanosecond.
    pub(crate) overflows: bool,
    /// Whether the events are ordered by start and, for equal starts, the longer one comes first.
    pub(crate) is_sorted: bool,
    previous_start: Nanos,
    previous_end: u64,
}

impl Default for Extremes {
    fn default() -> Self {
        Self {
            name: 0,
            thread: 0,
            stack: 0,
            inputs: 0,
            last_end: 0,
            overflows: false,
            is_sorted: true,
            previous_start: Nanos::ZERO,
            previous_end: u64::MAX,
        }
    }
}

impl Extremes {
    /// Returns whether all ids of the events are valid in `part` and no end overflows.
    pub(crate) fn are_within(&self, part: &Part) -> bool {
        let is_known = (self.name as usize) < part.strings.len()
            && (self.thread as usize) < part.threads.len()
            && (self.stack as usize) < part.stacks.len()
            && (self.inputs as usize) < part.inputs.len();
        part.is_empty() || (is_known && !self.overflows)
    }

    /// Includes the next event.
    #[inline]
    pub(crate) fn add(&mut self, event: &Event) {
        self.name = self.name.max(event.name.to_raw());
        self.thread = self.thread.max(event.thread.to_raw());
        self.stack = self.stack.max(event.stack.to_raw());
        self.inputs = self.inputs.max(event.inputs.to_raw());
        let (end, overflows) = event.start.0.overflowing_add(event.duration.0);
        self.overflows |= overflows;
        self.last_end = self.last_end.max(end);
        if event.start <= self.previous_start {
            self.is_sorted &= event.start == self.previous_start && end <= self.previous_end;
        }
        (self.previous_start, self.previous_end) = (event.start, end);
    }
}
