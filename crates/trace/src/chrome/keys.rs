//! The keys of events and of their arguments that the reader knows.

/// The keys of an event that the reader knows.
pub const EVENT_KEYS: [&str; 8] = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"];

/// The keys of event arguments that the reader knows, in the order of `ArgumentKey`.
pub const ARGUMENT_KEYS: [&str; ArgumentKey::Other as usize] = [
    "Input Dims",
    "Input type",
    "Input Strides",
    "Concrete Inputs",
    "Input List type",
    "Call stack",
    "CallFrom",
    "name",
    "Sequence number",
    "Fwd thread id",
    "finished",
    "Async",
    "External id",
    "correlation",
    "Python id",
    "Python parent id",
    "Python module id",
    "Input Storages",
    "Tensor Roles",
    "Bytes",
    "Addr",
    "Total Allocated",
    "Total Reserved",
    "Device Type",
    "Device Id",
    "Record function id",
    "Ev Idx",
];

/// The next element of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Key {
    /// The value of a field.
    Field(EventKey),
    /// The value of an argument.
    Argument(ArgumentKey),
    /// The end of the event.
    #[default]
    End,
}

impl Key {
    /// Returns whether the value rarely changes between events.
    pub(super) const fn is_steady(self) -> bool {
        match self {
            Self::Field(key) => matches!(
                key,
                EventKey::Phase | EventKey::Category | EventKey::Process | EventKey::Thread
            ),
            Self::Argument(key) => STEADY.contains(key),
            Self::End => false,
        }
    }
}

const STEADY: ArgumentKeys = ArgumentKeys::new(&[
    ArgumentKey::ForwardThread,
    ArgumentKey::Finished,
    ArgumentKey::Asynchronous,
    ArgumentKey::DeviceType,
    ArgumentKey::DeviceId,
    ArgumentKey::RecordFunction,
    ArgumentKey::Other,
]);

/// A known key of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKey {
    Phase,
    Category,
    Name,
    Process,
    Thread,
    Start,
    Duration,
    Arguments,
    Other,
}

impl EventKey {
    pub(super) fn of(text: &[u8]) -> Self {
        match text {
            b"ph" => Self::Phase,
            b"cat" => Self::Category,
            b"name" => Self::Name,
            b"pid" => Self::Process,
            b"tid" => Self::Thread,
            b"ts" => Self::Start,
            b"dur" => Self::Duration,
            b"args" => Self::Arguments,
            _ => Self::Other,
        }
    }
}

/// A known key of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ArgumentKey {
    Dims,
    Types,
    Strides,
    Values,
    ListTypes,
    CallStack,
    CallFrom,
    /// The last key whose values are interned.
    Name,
    Sequence,
    ForwardThread,
    Finished,
    Asynchronous,
    External,
    Correlation,
    Python,
    PythonParent,
    PythonModule,
    Storages,
    Roles,
    Bytes,
    Address,
    TotalAllocated,
    TotalReserved,
    DeviceType,
    DeviceId,
    RecordFunction,
    EventIndex,
    Other,
}

impl ArgumentKey {
    /// The number of keys whose values are interned.
    pub(super) const TEXTS: usize = Self::Name as usize + 1;
    /// The number of other known keys.
    pub(super) const VALUES: usize = Self::Other as usize - Self::TEXTS;

    const ALL: [Self; Self::Other as usize] = [
        Self::Dims,
        Self::Types,
        Self::Strides,
        Self::Values,
        Self::ListTypes,
        Self::CallStack,
        Self::CallFrom,
        Self::Name,
        Self::Sequence,
        Self::ForwardThread,
        Self::Finished,
        Self::Asynchronous,
        Self::External,
        Self::Correlation,
        Self::Python,
        Self::PythonParent,
        Self::PythonModule,
        Self::Storages,
        Self::Roles,
        Self::Bytes,
        Self::Address,
        Self::TotalAllocated,
        Self::TotalReserved,
        Self::DeviceType,
        Self::DeviceId,
        Self::RecordFunction,
        Self::EventIndex,
    ];

    pub(super) fn of(text: &[u8]) -> Self {
        // Kineto's spelling for device work in 2021.
        let text = if text == b"external id" {
            b"External id"
        } else {
            text
        };
        let found = ARGUMENT_KEYS.iter().position(|key| key.as_bytes() == text);
        found.map_or(Self::Other, |index| Self::ALL[index])
    }

    /// Returns whether the values are interned, because they repeat.
    #[inline]
    pub(super) const fn is_text(self) -> bool {
        (self as usize) < Self::TEXTS
    }

    /// Returns the spelling of the key in traces.
    pub(super) fn name(self) -> &'static str {
        ARGUMENT_KEYS.get(self as usize).copied().unwrap_or("")
    }
}

/// A set of argument keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ArgumentKeys(u32);

impl ArgumentKeys {
    pub(super) const NONE: Self = Self(0);
    /// The lists that describe inputs.
    pub(super) const INPUTS: Self = Self::new(&[
        ArgumentKey::Dims,
        ArgumentKey::Types,
        ArgumentKey::Strides,
        ArgumentKey::Values,
        ArgumentKey::ListTypes,
    ]);
    /// The keys of scopes whose values a profile always reproduces.
    pub(super) const SIMPLE: Self = Self::new(&[
        ArgumentKey::External,
        ArgumentKey::Correlation,
        ArgumentKey::EventIndex,
    ]);

    pub(super) const fn new(keys: &[ArgumentKey]) -> Self {
        let mut set = Self::NONE;
        let mut index = 0;
        while index < keys.len() {
            set.add(keys[index]);
            index += 1;
        }
        set
    }

    #[inline]
    pub(super) const fn add(&mut self, key: ArgumentKey) {
        self.0 |= 1 << key as u32;
    }

    #[inline]
    pub(super) const fn remove(&mut self, key: ArgumentKey) {
        self.0 &= !(1 << key as u32);
    }

    #[inline]
    pub(super) const fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    #[inline]
    pub(super) const fn contains(self, key: ArgumentKey) -> bool {
        self.0 & (1 << key as u32) != 0
    }

    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the keys that are not in `other`.
    #[inline]
    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the keys that are also in `other`.
    #[inline]
    pub(super) const fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = ArgumentKey> {
        ArgumentKey::ALL
            .into_iter()
            .filter(move |&key| self.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_by_its_name() {
        for (index, key) in ArgumentKey::ALL.into_iter().enumerate() {
            assert_eq!(key as usize, index);
            assert_eq!(ArgumentKey::of(key.name().as_bytes()), key);
        }
        assert_eq!(ArgumentKey::of(b"grid"), ArgumentKey::Other);
        for key in EVENT_KEYS {
            assert_ne!(EventKey::of(key.as_bytes()), EventKey::Other);
        }
    }
}
