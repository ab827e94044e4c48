//! The waist of the program: one immutable profile, however it came about.

use crate::{
    DeviceKind, Event, EventId, InputsTable, Links, Loss, MemoryRecords, Nanos, Origins, Part,
    PassthroughArgs, Results, RoleRecord, StackTable, StorageLists, StringTable, Thread, ThreadId,
    ThreadNumbers,
};

/// Everything that is known of one window of time. Made by [`crate::ProfileBuilder`].
#[derive(Clone, Debug)]
pub struct Profile {
    /// The parts that it was made of, put together, checked and in order.
    pub(crate) contents: Part,
    pub(crate) origins: Origins,
}

/// A profile as a part of a larger one.
impl From<Profile> for Part {
    fn from(profile: Profile) -> Self {
        profile.contents
    }
}

impl Profile {
    /// Returns the reference time, the profile's zero, in nanoseconds since the Unix epoch.
    pub const fn reference_unix_ns(&self) -> u64 {
        self.contents.reference_unix_ns
    }

    /// Returns how long the window was open.
    pub const fn span(&self) -> Nanos {
        self.contents.span
    }

    /// Returns the strings that events and threads name.
    pub const fn strings(&self) -> &StringTable {
        &self.contents.strings
    }

    /// Returns the input lists that events name.
    pub const fn inputs(&self) -> &InputsTable {
        &self.contents.inputs
    }

    /// Returns the stacks that events and memory records name.
    pub const fn stacks(&self) -> &StackTable {
        &self.contents.stacks
    }

    /// Returns the threads and streams.
    pub fn threads(&self) -> &[Thread] {
        &self.contents.threads
    }

    /// Returns which of the profile's sources a thread is of: numbers that tie events together count
    /// within one.
    ///
    /// # Panics
    /// When `thread` is of another profile.
    pub fn origin(&self, thread: ThreadId) -> usize {
        self.origins.of(thread)
    }

    /// Returns the rank of the process that a thread is of, where there are several.
    ///
    /// # Panics
    /// When `thread` is of another profile.
    pub fn rank(&self, thread: ThreadId) -> Option<u32> {
        self.origins.rank(thread)
    }

    /// Returns the numbers that people know the threads by. Looks at events until each thread of
    /// the host had one.
    pub fn thread_numbers(&self) -> ThreadNumbers {
        let devices = self.threads().iter().map(|thread| thread.device);
        let is_host: Vec<bool> = devices.map(|device| device == DeviceKind::Cpu).collect();
        ThreadNumbers::build(&is_host, self.events())
    }

    /// Returns the events, ordered by start; of two with one start the longer comes first.
    pub fn events(&self) -> &[Event] {
        &self.contents.events.events
    }

    /// Returns one event.
    ///
    /// # Panics
    /// When `id` is of another profile.
    pub fn event(&self, id: EventId) -> &Event {
        &self.contents.events.events[id.index()]
    }

    /// Returns the identifiers of an event; none where the profile has none.
    pub fn links(&self, id: EventId) -> Option<Links> {
        self.has_links().then(|| self.contents.links.at(id.index()))
    }

    /// Returns whether events have identifiers.
    pub fn has_links(&self) -> bool {
        !self.contents.links.is_empty()
    }

    /// Returns the memory records, ordered by time.
    pub const fn memory(&self) -> &MemoryRecords {
        &self.contents.memory
    }

    /// Returns where the tensors lie that events were given.
    pub const fn storages(&self) -> &StorageLists {
        &self.contents.storages
    }

    /// Returns what events returned, where that was recorded.
    pub const fn results(&self) -> &Results {
        &self.contents.results
    }

    /// Returns what tensors were said to be, ordered by time.
    pub fn roles(&self) -> &[RoleRecord] {
        &self.contents.roles
    }

    /// Returns the name of an event.
    pub fn name(&self, event: &Event) -> &str {
        self.contents.strings.text(event.name)
    }

    /// Returns what users and the recording itself said about the profile.
    pub const fn metadata(&self) -> &Metadata {
        &self.contents.metadata
    }

    /// Returns what is said beyond what is known.
    pub const fn passthrough(&self) -> &PassthroughArgs {
        &self.contents.passthrough
    }

    /// Returns the counts of events that were not kept.
    pub const fn loss(&self) -> &Loss {
        &self.contents.loss
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
