//! Parts: the contribution of one source to a profile.
//!
//! A recording, a trace file, a device's late report and another rank each yield a part, with ids,
//! a time axis and process ids of its own. [`crate::ProfileBuilder`] combines parts.

use crate::{
    Event, EventBatch, InputsId, InputsTable, LinkColumns, Links, Loss, LossCause, MemoryRecord,
    MemoryRecords, Metadata, Nanos, PassthroughArgs, Profile, ProfileBuilder, Result, Results,
    RoleRecord, StackTable, StorageLists, StringTable, Thread, ThreadId,
};

mod check;
#[cfg(test)]
mod tests;

/// The contribution of one source to a profile. Its ids index its own tables and its times count
/// from its own time zero, so a source needs to know nothing about the others;
/// [`crate::ProfileBuilder::append`] translates both.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The rank of its process, if the job has several.
    pub rank: Option<u32>,
    /// The time zero in nanoseconds since the Unix epoch.
    pub reference_unix_ns: u64,
    /// The length of the window. The builder extends it to the last end.
    pub span: Nanos,
    /// The strings that events and threads refer to.
    pub strings: StringTable,
    /// The input lists that events refer to.
    pub inputs: InputsTable,
    /// The stacks that events and memory records refer to.
    pub stacks: StackTable,
    /// The number of events that the process had recorded before: the number of an event without an
    /// external id counts on from it, as torch numbers events from one recording to the next.
    pub numbered_before: u32,
    /// Facts about the profile.
    pub metadata: Metadata,
    /// Unknown fields and events of a trace file, kept for round-tripping. Events and memory
    /// records are indexed in the order in which they were added.
    pub passthrough: PassthroughArgs,
    pub(crate) threads: Vec<Thread>,
    pub(crate) events: EventBatch,
    pub(crate) links: LinkColumns,
    pub(crate) memory: MemoryRecords,
    pub(crate) storages: StorageLists,
    pub(crate) results: Results,
    pub(crate) roles: Vec<RoleRecord>,
    pub(crate) loss: Loss,
}

impl Part {
    /// Creates an empty part.
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

    /// Returns the events added so far, in the order in which they were added.
    pub fn events(&self) -> &[Event] {
        &self.events.events
    }

    /// Returns the links of an event; `index` counts events in the order in which they were added.
    pub fn links(&self, index: usize) -> Links {
        self.links.at(index)
    }

    /// Moves events to other threads of the part: `thread` returns the new thread of an event, or
    /// `None` to leave it where it is.
    ///
    /// # Panics
    /// Panics if the part has no such thread.
    pub fn move_events(&mut self, mut thread: impl FnMut(&Event) -> Option<ThreadId>) {
        for event in &mut self.events.events {
            if let Some(found) = thread(event) {
                assert!(found.index() < self.threads.len(), "a thread of the part");
                event.thread = found;
                let most = &mut self.events.extremes.thread;
                *most = found.to_raw().max(*most);
            }
        }
    }

    /// Adds many events. The first batch is taken over without a copy.
    pub fn add_events(&mut self, batch: EventBatch) {
        self.events.append(batch);
    }

    /// Adds events with their links; `links` has one entry per event of the batch.
    pub fn add_linked_events(&mut self, batch: EventBatch, links: LinkColumns) {
        let (before, count) = (self.events.len(), batch.len());
        self.add_events(batch);
        self.links.append(before, links, count);
    }

    /// Sets the links of all events added so far.
    pub fn set_links(&mut self, links: LinkColumns) {
        self.links = links;
    }

    /// Adds an event, in any order. Events that arrive in start order are not sorted again.
    pub fn add_event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Adds an event with its links. Events added without links have none.
    pub fn add_linked_event(&mut self, event: Event, links: Links) {
        self.links.set(self.events.len(), links);
        self.events.push(event);
    }

    /// Sets the inputs of an event; `index` counts events in the order in which they were added.
    pub fn set_inputs(&mut self, index: usize, inputs: InputsId) {
        self.events.set_inputs(index, inputs);
    }

    /// Adds a memory record, in any order.
    pub fn add_memory(&mut self, record: MemoryRecord) {
        self.memory.push(&record);
    }

    /// Reserves room for the storage addresses of the first `events` events.
    pub fn reserve_storages(&mut self, events: usize) {
        self.storages.reserve(events);
    }

    /// Sets the storage addresses of an event's tensors; `index` counts events in the order in
    /// which they were added.
    pub fn set_storages(&mut self, index: usize, addresses: &[u64]) {
        self.storages.set(index, addresses);
    }

    /// Sets the results of an event: a list of tensors and the addresses of their storages. `index`
    /// counts events in the order in which they were added.
    pub fn set_results(&mut self, index: usize, tensors: InputsId, addresses: &[u64]) {
        self.results.set(index, tensors, addresses);
    }

    /// Adds the role of a tensor, in any order.
    pub fn add_role(&mut self, record: RoleRecord) {
        self.roles.push(record);
    }

    /// Reserves room for so many more memory records.
    pub fn reserve_memory(&mut self, records: usize) {
        self.memory.reserve(records);
    }

    /// Adds memory records, in any order.
    pub fn add_memory_records(&mut self, records: impl IntoIterator<Item = MemoryRecord>) {
        self.memory.extend(records);
    }

    /// Returns the number of events added so far.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns whether no events were added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts lost events.
    pub fn add_loss(&mut self, cause: LossCause, count: u64) {
        self.loss.add(cause, count);
    }

    /// Counts lost events of several causes.
    pub fn add_losses(&mut self, loss: &Loss) {
        self.loss.merge(loss);
    }

    /// Builds the profile of this part alone.
    ///
    /// # Errors
    /// Fails as [`ProfileBuilder::build`] does.
    pub fn into_profile(self) -> Result<Profile> {
        ProfileBuilder::from(self).build()
    }
}
