//! The waist of the program: one immutable profile, however it came about.

use crate::{
    Event, EventId, Extras, InputsTable, LinkColumns, Links, Loss, MemoryRecords, Nanos,
    RoleRecord, StackTable, StorageLists, StringTable, Thread,
};

/// Everything that is known of one window of time. Made by [`crate::ProfileBuilder`].
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) reference_unix_ns: u64,
    pub(crate) span: Nanos,
    pub(crate) strings: StringTable,
    pub(crate) inputs: InputsTable,
    pub(crate) stacks: StackTable,
    pub(crate) threads: Vec<Thread>,
    pub(crate) events: Vec<Event>,
    pub(crate) links: LinkColumns,
    pub(crate) memory: MemoryRecords,
    pub(crate) storages: StorageLists,
    pub(crate) roles: Vec<RoleRecord>,
    pub(crate) metadata: Metadata,
    pub(crate) extras: Extras,
    pub(crate) loss: Loss,
}

impl Profile {
    /// Returns the reference time, the profile's zero, in nanoseconds since the Unix epoch.
    pub const fn reference_unix_ns(&self) -> u64 {
        self.reference_unix_ns
    }

    /// Returns how long the window was open.
    pub const fn span(&self) -> Nanos {
        self.span
    }

    /// Returns the strings that events and threads name.
    pub const fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// Returns the input lists that events name.
    pub const fn inputs(&self) -> &InputsTable {
        &self.inputs
    }

    /// Returns the stacks that events and memory records name.
    pub const fn stacks(&self) -> &StackTable {
        &self.stacks
    }

    /// Returns the threads and streams.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Returns the events, ordered by start; of two with one start the longer comes first.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns one event.
    ///
    /// # Panics
    /// When `id` is of another profile.
    pub fn event(&self, id: EventId) -> &Event {
        &self.events[id.index()]
    }

    /// Returns the identifiers of an event; none where the profile has none.
    pub fn links(&self, id: EventId) -> Option<Links> {
        self.has_links().then(|| self.links.at(id.index()))
    }

    /// Returns whether events have identifiers.
    pub fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// Returns the memory records, ordered by time.
    pub const fn memory(&self) -> &MemoryRecords {
        &self.memory
    }

    /// Returns where the tensors lie that events were given.
    pub const fn storages(&self) -> &StorageLists {
        &self.storages
    }

    /// Returns what tensors were said to be, ordered by time.
    pub fn roles(&self) -> &[RoleRecord] {
        &self.roles
    }

    /// Returns the name of an event.
    pub fn name(&self, event: &Event) -> &str {
        self.strings.text(event.name)
    }

    /// Returns what users and the recording itself said about the profile.
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns what is said beyond what is known.
    pub const fn extras(&self) -> &Extras {
        &self.extras
    }

    /// Returns the counts of events that were not kept.
    pub const fn loss(&self) -> &Loss {
        &self.loss
    }
}

/// Facts about a profile as pairs of a key and a text, in the order in which they were first set.
///
/// What a text means is between who sets it and who writes it out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    entries: Vec<(String, String)>,
}

impl Metadata {
    /// Sets `key`; the last value given wins.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key, value)),
        }
    }

    /// Returns the text of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
    }

    /// Walks the pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }
}
