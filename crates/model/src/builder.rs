//! The one way to make a [`Profile`]: parts in, checked and ordered, profile out.

use std::cmp::Reverse;

use crate::event_batch::Extremes;
use crate::{
    Error, Event, EventBatch, EventId, ExtraKind, Extras, InputsTable, LinkColumns, Links, Loss,
    LossCause, MemoryRecord, MemoryRecords, Metadata, Nanos, Profile, Result, RoleRecord, StackId,
    StackTable, StorageLists, StringTable, Thread, ThreadId,
};

#[cfg(test)]
mod tests;

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
    pub(crate) events: Vec<Event>,
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
