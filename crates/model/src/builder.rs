//! The one way to make a [`Profile`]: parts in, checked and ordered, profile out.

use std::cmp::Reverse;

use crate::event_batch::Extremes;
use crate::{
    Category, Error, Event, EventBatch, EventId, ExtraKind, Extras, InputsTable, LinkColumns,
    Links, Loss, LossCause, MemoryRecord, MemoryRecords, Metadata, Nanos, Profile, Result,
    RoleRecord, StackId, StackTable, StorageLists, StringId, StringTable, Thread, ThreadId,
};

/// Collects the parts of a profile and checks what every reader relies on.
#[derive(Clone, Debug, Default)]
pub struct ProfileBuilder {
    /// The reference time in nanoseconds since the Unix epoch.
    pub reference_unix_ns: u64,
    /// How long the window was open; at least up to the last end.
    pub span: Nanos,
    /// The strings that the events name.
    pub strings: StringTable,
    /// The input lists that the events name.
    pub inputs: InputsTable,
    /// The stacks that the events and memory records name.
    pub stacks: StackTable,
    /// What is said about the profile.
    pub metadata: Metadata,
    /// What is said beyond what is known. Of events and memory records it goes by the order in
    /// which they were added.
    pub extras: Extras,
    threads: Vec<Thread>,
    events: Vec<Event>,
    /// What is so of the first events, and how many those are.
    extremes: Extremes,
    looked_over: usize,
    links: LinkColumns,
    memory: MemoryRecords,
    storages: StorageLists,
    roles: Vec<RoleRecord>,
    loss: Loss,
}

impl ProfileBuilder {
    /// Makes a builder without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a thread and returns its id.
    pub fn add_thread(&mut self, thread: Thread) -> ThreadId {
        self.threads.push(thread);
        ThreadId::from_index(self.threads.len() - 1)
    }

    /// Returns the threads added so far.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Adds many events. The first batch is taken as it is, without a copy.
    pub fn add_events(&mut self, batch: EventBatch) {
        if self.events.is_empty() {
            self.looked_over = batch.events.len();
            (self.events, self.extremes) = (batch.events, batch.extremes);
        } else {
            self.events.extend(batch.events);
        }
    }

    /// Adds events, each with the numbers that tie it to others at the same place of `links`.
    pub fn add_linked_events(&mut self, batch: EventBatch, links: LinkColumns) {
        let (before, added) = (self.events.len(), batch.events.len());
        self.add_events(batch);
        if before == 0 {
            self.links = links;
        } else {
            for index in 0..added {
                self.links.set(before + index, links.at(index));
            }
        }
    }

    /// Adds an event. Any order will do; one that is ordered already is not sorted again.
    pub fn add_event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Adds an event with its identifiers. Events that were added without them have none.
    pub fn add_linked_event(&mut self, event: Event, links: Links) {
        self.links.set(self.events.len(), links);
        self.events.push(event);
    }

    /// Adds a memory record. Any order will do.
    pub fn add_memory(&mut self, record: MemoryRecord) {
        self.memory.push(&record);
    }

    /// Makes room for where the tensors lie of events up to number `events`.
    pub fn reserve_storages(&mut self, events: usize) {
        self.storages.reserve(events);
    }

    /// Says where the tensors lie that an event was given; `index` counts the events in the order
    /// in which they were added.
    pub fn set_storages(&mut self, index: usize, addresses: &[u64]) {
        self.storages.set(index, addresses);
    }

    /// Adds what a tensor was said to be. Any order will do.
    pub fn add_role(&mut self, record: RoleRecord) {
        self.roles.push(record);
    }

    /// Makes room for so many memory records more.
    pub fn reserve_memory(&mut self, records: usize) {
        self.memory.reserve(records);
    }

    /// Adds records of memory taken or given back, in any order.
    pub fn add_memory_records(&mut self, records: impl IntoIterator<Item = MemoryRecord>) {
        self.memory.extend(records);
    }

    /// Returns the number of events added so far.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns whether no event was added.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Counts events that were not kept.
    pub fn add_loss(&mut self, cause: LossCause, count: u64) {
        self.loss.add(cause, count);
    }

    /// Counts events that were not kept, for several causes.
    pub fn add_losses(&mut self, loss: &Loss) {
        self.loss.merge(loss);
    }

    /// Builds the profile.
    ///
    /// # Errors
    /// When an event names a string, thread or stack that is not there, or ends beyond the last
    /// nanosecond.
    pub fn build(mut self) -> Result<Profile> {
        let (mut last_end, is_sorted) = self.check_events()?;
        for record in self.memory.distinct() {
            self.check_memory(&record)?;
        }
        for record in &self.roles {
            self.check_thread(record.thread)?;
        }
        for record in self.extras.records() {
            self.check_thread(record.thread)?;
        }
        if let Some(order) = self.memory.settle() {
            self.extras.reorder(ExtraKind::MemoryArguments, &order);
        }
        if let Some(last) = self.memory.len().checked_sub(1) {
            last_end = last_end.max(self.memory.time(last));
        }
        self.roles.sort_by_key(|record| record.time);
        if !is_sorted {
            self.sort();
        }
        self.storages.settle();
        self.extras.settle();
        Ok(Profile {
            reference_unix_ns: self.reference_unix_ns,
            span: self.span.max(last_end),
            strings: self.strings,
            inputs: self.inputs,
            stacks: self.stacks,
            threads: self.threads,
            events: self.events,
            links: self.links,
            memory: self.memory,
            storages: self.storages,
            roles: self.roles,
            metadata: self.metadata,
            extras: self.extras,
            loss: self.loss,
        })
    }

    /// Orders the events. Stable, so that of two events with the same interval the first one added
    /// stays the outer one.
    fn sort(&mut self) {
        let key = |event: &Event| (event.start, Reverse(event.end()));
        if self.links.is_empty() && self.storages.is_empty() && self.extras.is_empty() {
            self.events.sort_by_key(key);
        } else {
            let mut order: Vec<u32> = (0..self.events.len() as u32).collect();
            order.sort_by_key(|&index| key(&self.events[index as usize]));
            self.events = order.iter().map(|&i| self.events[i as usize]).collect();
            self.links = self.links.reordered(&order);
            self.storages.reorder(&order);
            for kind in [ExtraKind::Category, ExtraKind::Fields, ExtraKind::Arguments] {
                self.extras.reorder(kind, &order);
            }
        }
    }

    /// Returns the last end, and whether the events lie in order.
    ///
    /// Looks at extremes and at no event by itself: what is wrong is found out only when something
    /// is.
    fn check_events(&self) -> Result<(Nanos, bool)> {
        let mut found = self.extremes.clone();
        for event in &self.events[self.looked_over..] {
            found.add(event);
        }
        let is_known = (found.name as usize) < self.strings.len()
            && (found.thread as usize) < self.threads.len()
            && (found.stack as usize) < self.stacks.len();
        if !self.events.is_empty() && (!is_known || found.overflows) {
            for (index, event) in self.events.iter().enumerate() {
                self.check(index, event)?;
            }
        }
        Ok((Nanos(found.last_end), found.is_sorted))
    }

    fn check_memory(&self, record: &MemoryRecord) -> Result<()> {
        self.check_thread(record.thread)?;
        self.check_stack(record.stack)
    }

    fn check_thread(&self, thread: ThreadId) -> Result<()> {
        if thread.index() < self.threads.len() {
            return Ok(());
        }
        Err(Error::UnknownMemoryThread {
            thread,
            threads: self.threads.len(),
        })
    }

    fn check_stack(&self, stack: StackId) -> Result<()> {
        if stack.index() < self.stacks.len() {
            return Ok(());
        }
        Err(Error::UnknownStack {
            stack,
            stacks: self.stacks.len(),
        })
    }

    fn check(&self, index: usize, event: &Event) -> Result<()> {
        if event.name.index() >= self.strings.len() {
            return Err(Error::UnknownName {
                event: EventId::from_index(index),
                name: event.name,
                strings: self.strings.len(),
            });
        }
        if event.thread.index() >= self.threads.len() {
            return Err(Error::UnknownThread {
                event: EventId::from_index(index),
                thread: event.thread,
                threads: self.threads.len(),
            });
        }
        self.check_stack(event.stack)?;
        let end = event.start.0.checked_add(event.duration.0);
        end.map(drop).ok_or(Error::EndOverflow {
            event: EventId::from_index(index),
        })
    }
}

/// Draws a profile for tests: nested closures on a clock that only moves when told to.
///
/// ```
/// use mindprof_model::Timeline;
///
/// // parent |--------------------|   0..100
/// // child      |------|            10..40
/// let profile = Timeline::draw(|time| {
///     time.scope("parent", |time| {
///         time.idle(10);
///         time.op("child", 30);
///         time.idle(60);
///     });
/// });
/// assert_eq!(profile.events()[0].duration.0, 100);
/// ```
#[derive(Debug)]
pub struct Timeline {
    builder: ProfileBuilder,
    thread: ThreadId,
    now: u64,
}

impl Timeline {
    /// Draws one thread; [`Self::thread`] begins another.
    ///
    /// # Panics
    /// Never: what a timeline adds is whole.
    pub fn draw(draw: impl FnOnce(&mut Self)) -> Profile {
        let mut timeline = Self {
            builder: ProfileBuilder::new(),
            thread: ThreadId::from_raw(0),
            now: 0,
        };
        timeline.thread(1);
        draw(&mut timeline);
        timeline
            .builder
            .build()
            .expect("a timeline names only what it added")
    }

    /// Goes on at time zero of a new thread with this native id.
    pub fn thread(&mut self, native: u64) {
        let thread = Thread {
            process: 1,
            native,
            name: StringTable::EMPTY,
            device: crate::DeviceKind::Cpu,
        };
        self.thread = self.builder.add_thread(thread);
        self.now = 0;
    }

    /// Lets time pass.
    pub fn idle(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
    }

    /// Adds an operator that takes `nanoseconds` and calls nothing.
    pub fn op(&mut self, name: &str, nanoseconds: u64) {
        self.scope(name, |time| time.idle(nanoseconds));
    }

    /// Adds an operator around what `inside` draws.
    pub fn scope(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.event(Category::Operator, name, inside);
    }

    /// Adds a user's range around what `inside` draws.
    pub fn annotation(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.event(Category::Annotation, name, inside);
    }

    /// Adds an event of any category around what `inside` draws.
    pub fn event(&mut self, category: Category, name: &str, inside: impl FnOnce(&mut Self)) {
        let name: StringId = self.builder.strings.intern(name);
        let (start, thread) = (self.now, self.thread);
        let slot = self.builder.events.len();
        self.builder.add_event(Event::new(
            category,
            name,
            thread,
            Nanos(start),
            Nanos::ZERO,
        ));
        inside(self);
        self.builder.events[slot].duration = Nanos(self.now - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceKind;

    fn builder_with_thread() -> ProfileBuilder {
        let mut builder = ProfileBuilder::new();
        builder.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        builder
    }

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

    #[test]
    fn events_come_out_by_start_then_longest_first() {
        let mut builder = builder_with_thread();
        for (start, duration) in [(5, 1), (0, 2), (0, 9), (5, 3)] {
            builder.add_event(event(start, duration));
        }
        let profile = builder.build().unwrap();
        let order: Vec<_> = profile
            .events()
            .iter()
            .map(|e| (e.start.0, e.duration.0))
            .collect();
        assert_eq!(order, [(0, 9), (0, 2), (5, 3), (5, 1)]);
        assert_eq!(profile.span(), Nanos(9));
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let mut builder = builder_with_thread();
        let mut stranger = event(0, 1);
        stranger.name = StringId::from_raw(7);
        builder.add_event(stranger);
        assert_eq!(
            builder.build().unwrap_err().to_string(),
            "event 0 has the name string 7, expected an id below 1"
        );
    }

    #[test]
    fn an_unknown_thread_is_refused() {
        let mut builder = ProfileBuilder::new();
        builder.add_event(event(0, 1));
        assert_eq!(
            builder.build().unwrap_err().to_string(),
            "event 0 ran on thread 0, expected an id below 0"
        );
    }

    #[test]
    fn an_unknown_stack_is_refused() {
        let mut builder = builder_with_thread();
        let mut stranger = event(0, 1);
        stranger.stack = StackId::from_raw(3);
        builder.add_event(stranger);
        assert_eq!(
            builder.build().unwrap_err().to_string(),
            "stack 3 is named, expected an id below 1"
        );
    }

    #[test]
    fn identifiers_stay_with_their_events() {
        let mut builder = builder_with_thread();
        builder.add_event(event(9, 1));
        for start in [5, 0] {
            builder.add_linked_event(event(start, 1), Links::new(start as u32 + 1, 0));
        }
        builder.add_event(event(7, 1));
        let profile = builder.build().unwrap();
        let externals: Vec<_> = (0..4)
            .map(|index| profile.links(EventId::from_index(index)).unwrap().external)
            .collect();
        assert_eq!(externals, [1, 6, 0, 0]);
    }

    #[test]
    fn memory_records_come_out_by_time() {
        let mut builder = builder_with_thread();
        for time in [4, 2] {
            builder.add_memory(MemoryRecord {
                time: Nanos(time),
                address: 1,
                bytes: 8,
                total_allocated: 8,
                total_reserved: 8,
                thread: ThreadId::from_raw(0),
                stack: StackId::NONE,
                device: DeviceKind::Cpu,
                device_index: -1,
            });
        }
        let profile = builder.build().unwrap();
        assert_eq!(profile.memory().time(0), Nanos(2));
        assert_eq!(profile.span(), Nanos(4));
    }

    #[test]
    fn an_end_beyond_time_is_refused() {
        let mut builder = builder_with_thread();
        builder.add_event(event(u64::MAX, 1));
        assert!(matches!(builder.build(), Err(Error::EndOverflow { .. })));
    }
}
