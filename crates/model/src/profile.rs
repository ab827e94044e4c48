//! The profile: one immutable value, whatever source it came from.

use crate::{
    DeviceKind, Event, EventId, InputsTable, Links, Loss, MemoryRecords, Nanos, Origins, Part,
    PassthroughArgs, Results, RoleRecord, StackTable, StorageLists, StringTable, Thread, ThreadId,
    ThreadNumbers,
};

/// Everything known about one window of time: events, threads, memory, links, metadata and losses.
/// [`crate::ProfileBuilder`] creates it from parts and checks it, so that its readers can rely on
/// every id being valid and every list being in order.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The combined, checked and ordered parts.
    pub(crate) contents: Part,
    pub(crate) origins: Origins,
}

/// Turns a profile into a part of a larger one.
impl From<Profile> for Part {
    fn from(profile: Profile) -> Self {
        profile.contents
    }
}

impl Profile {
    /// Returns the reference time, which is the profile's zero, in nanoseconds since the Unix
    /// epoch.
    pub const fn reference_unix_ns(&self) -> u64 {
        self.contents.reference_unix_ns
    }

    /// Returns the length of the window.
    pub const fn span(&self) -> Nanos {
        self.contents.span
    }

    /// Returns the strings that events and threads refer to.
    pub const fn strings(&self) -> &StringTable {
        &self.contents.strings
    }

    /// Returns the input lists that events refer to.
    pub const fn inputs(&self) -> &InputsTable {
        &self.contents.inputs
    }

    /// Returns the stacks that events and memory records refer to.
    pub const fn stacks(&self) -> &StackTable {
        &self.contents.stacks
    }

    /// Returns the threads and streams.
    pub fn threads(&self) -> &[Thread] {
        &self.contents.threads
    }

    /// Returns the index of the source that a thread came from. Ids that link events are only
    /// unique within one source.
    ///
    /// # Panics
    /// Panics if `thread` belongs to another profile.
    pub fn origin(&self, thread: ThreadId) -> usize {
        self.origins.of(thread)
    }

    /// Returns the rank of the process that a thread belongs to, if the profile has several.
    ///
    /// # Panics
    /// Panics if `thread` belongs to another profile.
    pub fn rank(&self, thread: ThreadId) -> Option<u32> {
        self.origins.rank(thread)
    }

    /// Returns the display numbers of the threads. It scans events until every CPU thread has
    /// appeared.
    pub fn thread_numbers(&self) -> ThreadNumbers {
        let devices = self.threads().iter().map(|thread| thread.device);
        let is_host: Vec<bool> = devices.map(|device| device == DeviceKind::Cpu).collect();
        ThreadNumbers::build(&is_host, self.events())
    }

    /// Returns the events, ordered by start; the longer of two with equal starts comes first.
    pub fn events(&self) -> &[Event] {
        &self.contents.events.events
    }

    /// Returns one event.
    ///
    /// # Panics
    /// Panics if `id` belongs to another profile.
    pub fn event(&self, id: EventId) -> &Event {
        &self.contents.events.events[id.index()]
    }

    /// Returns the links of an event, or `None` if the profile has no links at all.
    pub fn links(&self, id: EventId) -> Option<Links> {
        self.has_links().then(|| self.contents.links.at(id.index()))
    }

    /// Returns the number by which traces and torch's raw results name an operator or range with
    /// these links: its external id or, if it has none, its position among the events of the process.
    pub const fn scope_number(&self, id: EventId, links: &Links) -> u32 {
        if links.external != 0 {
            return links.external;
        }
        let position = self.contents.numbered_before.wrapping_add(id.to_raw());
        position.wrapping_add(1)
    }

    /// Returns the profile with its events counted on from so many earlier events of the process.
    #[must_use]
    pub const fn numbered_after(mut self, events: u32) -> Self {
        self.contents.numbered_before = events;
        self
    }

    /// Returns the overload of an operator, or `None` if it was not recorded or has no name.
    pub fn overload(&self, id: EventId) -> Option<&str> {
        let overload = self
            .has_overloads()
            .then(|| self.contents.links.at(id.index()));
        let overload = overload.and_then(|links| links.overload())?;
        Some(self.strings().text(overload))
    }

    /// Returns the calls of `TorchScript` modules that an operator ran in, each with its class and
    /// method and followed by a dot, or `None` if there are none or they were not recorded.
    pub fn module_hierarchy(&self, id: EventId) -> Option<&str> {
        if !self.contents.links.has_module_hierarchies() {
            return None;
        }
        let hierarchy = self.links(id)?.module_hierarchy()?;
        Some(self.strings().text(hierarchy))
    }

    /// Returns whether the overloads of operators were recorded.
    pub fn has_overloads(&self) -> bool {
        self.contents.links.has_overloads()
    }

    /// Returns whether any event has links.
    pub fn has_links(&self) -> bool {
        !self.contents.links.is_empty()
    }

    /// Returns the memory records, ordered by time.
    pub const fn memory(&self) -> &MemoryRecords {
        &self.contents.memory
    }

    /// Returns the storage addresses of the events' input tensors.
    pub const fn storages(&self) -> &StorageLists {
        &self.contents.storages
    }

    /// Returns the tensors that events returned, if they were recorded.
    pub const fn results(&self) -> &Results {
        &self.contents.results
    }

    /// Returns the recorded roles of tensors, ordered by time.
    pub fn roles(&self) -> &[RoleRecord] {
        &self.contents.roles
    }

    /// Returns the name of an event.
    pub fn name(&self, event: &Event) -> &str {
        self.contents.strings.text(event.name)
    }

    /// Returns the metadata that the user and the recorder set.
    pub const fn metadata(&self) -> &Metadata {
        &self.contents.metadata
    }

    /// Returns the fields and events of the trace file that the profile itself does not model.
    pub const fn passthrough(&self) -> &PassthroughArgs {
        &self.contents.passthrough
    }

    /// Returns the counts of lost events.
    pub const fn loss(&self) -> &Loss {
        &self.contents.loss
    }
}

impl Profile {
    /// Returns the name of a kind of device in this profile. A third-party backend has a name of its
    /// own, such as `npu`, if the profile states it.
    pub fn device_name(&self, kind: DeviceKind) -> &str {
        let stated = self.metadata().get(Metadata::BACKEND);
        let stated = stated.map_or("", |text| text.trim_matches('"'));
        if kind == DeviceKind::PrivateUse1 && !stated.is_empty() {
            stated
        } else {
            kind.name()
        }
    }
}

/// Facts about a profile as key-value pairs, in the order in which the keys were first set.
///
/// Values are opaque texts here; the code that sets a key and the code that reads it agree on their
/// format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    entries: Vec<(String, String)>,
}

impl Metadata {
    /// The key of the name that a third-party backend gave its devices, a JSON string.
    pub const BACKEND: &str = "privateuse1_backend";

    /// The key of the memory of each component of the software on a device, a JSON list. Each entry
    /// has `component`, `device` and, as `allocated` and `reserved`, `null` or an object with the
    /// bytes `peak` and `end` and the time `peak_unix_ns`.
    pub const MEMORY_COMPONENTS: &str = "npu_memory_components";

    /// Sets `key`, replacing an earlier value.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key, value)),
        }
    }

    /// Removes `key`, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        let index = self.entries.iter().position(|(known, _)| known == key)?;
        Some(self.entries.remove(index).1)
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
    }

    /// Iterates over the pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }
}
