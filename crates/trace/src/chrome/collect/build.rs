//! Settles everything that depends on all events, and builds the part.

use mindprof_model::{
    Category, EventBatch, LinkColumns, Nanos, ScopeKind, ThreadId, ThreadNumbers, wrapped_node,
};

use super::Collector;
use super::order::{self, Nesting};
use crate::chrome::keys::ArgumentKey;
use crate::read_options::UnknownArgs;
use crate::reading::PartReading;
use crate::repairs::Repair;

impl Collector {
    /// Builds the part. Time zero is the start of the window, or the first event if that is
    /// earlier.
    pub(in crate::chrome) fn build(mut self) -> PartReading {
        for unfinished in self.spans.close(&mut self.events, &mut self.repairs) {
            self.forget_argument(unfinished, ArgumentKey::Finished);
        }
        self.settle_amended();
        self.settle_layers();
        self.python.finish(&mut self.events, &mut self.part.stacks);
        self.forget_idle_links();
        let zero = self.earliest();
        self.shift_others(zero);
        let reference = i128::from(self.base_ns) + i128::from(zero);
        self.part.reference_unix_ns = u64::try_from(reference).unwrap_or(0);
        if let Some((start, span)) = self.window {
            self.part.span = Nanos(start.wrapping_sub(zero) as u64 + span.0);
        }
        let offset = self.order_events(zero);
        self.settle_tracks();
        self.link_launches(zero, offset);
        self.settle_forward_threads();
        let events = self.settle_events(offset);
        let bad_texts = self.vocabulary.bad_texts() + self.store.bad_texts();
        self.repairs.add(Repair::BadText, bad_texts);
        let unknown_categories = self.vocabulary.take_unknown();
        self.tracks.add_to(&mut self.part, self.device);
        self.part.add_linked_events(events, self.links);
        self.part.add_memory_records(self.memory);
        self.tensors.add_to(&mut self.part);
        PartReading {
            part: self.part,
            repairs: self.repairs,
            set_aside: self.set_aside,
            left_out: self.left_out,
            unknown_categories,
            sources: Vec::new(),
        }
    }

    /// Drops correlation ids that tie nothing together, unless the trace will be written again.
    fn forget_idle_links(&mut self) {
        let are_idle = !self.has_device_events && !self.has_forward_threads;
        if are_idle && self.store.unknown == UnknownArgs::Count {
            self.links = LinkColumns::default();
        }
    }

    /// Sorts the tracks by their first events, CPU threads before device streams, independently of
    /// the order in the file. Tracks that had only end events are dropped.
    fn settle_tracks(&mut self) {
        let is_stray = |(repair, ..): (Repair, u64, String)| repair == Repair::UnmatchedEnd;
        let has_strays = self.repairs.iter().any(is_stray);
        let count = self.tracks.len();
        let mut is_used = vec![false; count];
        let mut order = Vec::with_capacity(count);
        let mut events = self.events.iter();
        while order.len() < count
            && let Some(event) = events.next()
        {
            if !std::mem::replace(&mut is_used[event.thread.index()], true) {
                order.push(event.thread);
            }
        }
        let mut others = vec![!has_strays; count];
        if has_strays {
            self.each_thread(|thread| others[thread.index()] = true);
        }
        let others = (0..count).filter(|&index| others[index] && !is_used[index]);
        order.extend(others.map(ThreadId::from_index));
        if let Some(moved) = self.tracks.arrange(order) {
            self.each_thread(|thread| *thread = moved[thread.index()]);
        }
    }

    /// Calls `visit` with the thread of every event and record.
    pub(super) fn each_thread(&mut self, mut visit: impl FnMut(&mut ThreadId)) {
        for event in &mut self.events {
            visit(&mut event.thread);
        }
        for record in &mut self.memory {
            visit(&mut record.thread);
        }
        for role in &mut self.tensors.roles {
            visit(&mut role.thread);
        }
        for record in self.part.passthrough.unknown_events_mut() {
            visit(&mut record.thread);
        }
        self.flows.each_thread(visit);
    }

    /// Returns the earliest time.
    fn earliest(&self) -> i64 {
        let times = self.memory.iter().map(|record| record.time.0 as i64);
        let roles = self.tensors.roles.iter().map(|role| role.time.0 as i64);
        let window = self.window.map(|(start, _)| start);
        let times = times.chain(roles).chain(window).chain(self.earliest_start);
        times.min().unwrap_or(0)
    }

    /// Sorts the events into the order of a profile, if necessary, which requires times relative to
    /// `zero`. Returns the offset that remains to be subtracted.
    fn order_events(&mut self, zero: i64) -> i64 {
        if self.is_ordered.is_known() {
            return zero;
        }
        for event in &mut self.events {
            event.start = since(zero, event.start);
        }
        if !self.is_ordered.of(&self.events) {
            let order = order::find(&self.events);
            self.tensors.reorder(&order);
            self.links = self.links.reordered(&order);
            order::apply(order, &mut self.events, &mut self.part.passthrough);
        }
        0
    }

    /// Makes the times of events relative to `zero`, checks their nesting, and marks autograd
    /// nodes: not every one states the thread of its forward operator, but each has a wrapper that
    /// ends in its name.
    ///
    /// All of it happens in one pass, because the events far exceed any cache.
    fn settle_events(&mut self, zero: i64) -> EventBatch {
        let strings = &self.part.strings;
        let mut is_node = vec![false; strings.len()];
        for name in strings.iter().filter_map(wrapped_node) {
            if let Some(id) = strings.find(name) {
                is_node[id.index()] = true;
            }
        }
        let resolution = if self.has_nanoseconds { 0 } else { 1000 };
        let mut nesting = Nesting::new(self.tracks.are_whole(), resolution);
        let events = EventBatch::settled(std::mem::take(&mut self.events), |event| {
            event.start = since(zero, event.start);
            if event.category == Category::Operator && is_node[event.name.index()] {
                event.scope = ScopeKind::Backward;
            }
            nesting.add(event);
        });
        self.repairs.add(Repair::Crossing, nesting.crossing);
        self.repairs.add(Repair::Shortened, nesting.shortened);
        events
    }

    /// Makes all other times relative to `zero`.
    fn shift_others(&mut self, zero: i64) {
        for record in &mut self.memory {
            record.time = since(zero, record.time);
        }
        for role in &mut self.tensors.roles {
            role.time = since(zero, role.time);
        }
        for record in self.part.passthrough.unknown_events_mut() {
            let is_timeless = record.time_ns == i64::MAX;
            record.time_ns = if is_timeless {
                0
            } else {
                record.time_ns - zero
            };
        }
    }

    /// Resolves forward threads, which the trace gives by number.
    fn settle_forward_threads(&mut self) {
        if !self.has_forward_threads {
            return;
        }
        let numbers = ThreadNumbers::build(&self.tracks.are_of_cpu(), &self.events);
        let thread = |number: ThreadId| numbers.forward_thread(number.to_raw().saturating_add(1));
        (self.links).map_forward_threads(|forward| forward.map(thread));
    }
}

/// Returns the time since `zero`, where `time` holds the bits of a signed number.
const fn since(zero: i64, time: Nanos) -> Nanos {
    Nanos((time.0 as i64).abs_diff(zero))
}
