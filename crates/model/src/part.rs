//! What one source contributes to a profile: its own ids, its own time axis, its own process.
//!
//! A recording, a trace file, a device's late report or another rank each yields a part;
//! [`crate::ProfileBuilder`] puts parts together.

use crate::{
    Event, EventBatch, InputsId, InputsTable, LinkColumns, Links, Loss, LossCause, MemoryRecord,
    MemoryRecords, Metadata, Nanos, PassthroughArgs, Profile, ProfileBuilder, Result, Results,
    RoleRecord, StackTable, StorageLists, StringTable, Thread, ThreadId,
};

mod check;
#[cfg(test)]
mod tests;

/// Everything that one source knows. Ids are of its own tables, times since its own time zero.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Which of a job's processes it is of, where there are several.
    pub rank: Option<u32>,
    /// Its time zero in nanoseconds since the Unix epoch.
    pub reference_unix_ns: u64,
    /// How long the window was open; at least up to the last end.
    pub span: Nanos,
    /// The strings that the events name.
    pub strings: StringTable,
    /// The input lists that the events name.
    pub inputs: InputsTable,
    /// The stacks that the events and memory records name.
    pub stacks: StackTable,
    /// Facts about the profile.
    pub metadata: Metadata,
    /// What a file says beyond what a profile knows. Of events and memory records it goes by the
    /// order in which they were added.
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
    /// Makes a part that holds nothing.
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
        self.events.append(batch);
    }

    /// Adds events, each with the numbers that tie it to others at the same place of `links`.
    pub fn add_linked_events(&mut self, batch: EventBatch, links: LinkColumns) {
        let (before, count) = (self.events.len(), batch.len());
        self.add_events(batch);
        self.links.append(before, links, count);
    }

    /// Sets the numbers that tie all events added so far to others.
    pub fn set_links(&mut self, links: LinkColumns) {
        self.links = links;
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

    /// Makes room for the storages of events up to number `events`.
    pub fn reserve_storages(&mut self, events: usize) {
        self.storages.reserve(events);
    }

    /// Sets the addresses of the storages of an event's tensors; `index` counts the events in the
    /// order in which they were added.
    pub fn set_storages(&mut self, index: usize, addresses: &[u64]) {
        self.storages.set(index, addresses);
    }

    /// Sets what an event returned: a list of tensors, and the addresses of their storages; `index`
    /// counts the events in the order in which they were added.
    pub fn set_results(&mut self, index: usize, tensors: InputsId, addresses: &[u64]) {
        self.results.set(index, tensors, addresses);
    }

    /// Adds the role of a tensor. Any order will do.
    pub fn add_role(&mut self, record: RoleRecord) {
        self.roles.push(record);
    }

    /// Makes room for so many memory records more.
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

    /// Returns whether no event was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts events that were not kept.
    pub fn add_loss(&mut self, cause: LossCause, count: u64) {
        self.loss.add(cause, count);
    }

    /// Counts events that were not kept, for several causes.
    pub fn add_losses(&mut self, loss: &Loss) {
        self.loss.merge(loss);
    }

    /// Makes the profile of this part alone.
    ///
    /// # Errors
    /// As [`ProfileBuilder::build`].
    pub fn into_profile(self) -> Result<Profile> {
        ProfileBuilder::from(self).build()
    }
}
