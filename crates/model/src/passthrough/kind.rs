//! What a text that is passed through goes with.

/// What is said beyond what is known, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PassthroughKind {
    /// The exact category of an event.
    Category,
    /// Further fields of an event.
    Fields,
    /// Further arguments of an event.
    Arguments,
    /// Further arguments of a memory record.
    MemoryArguments,
    /// What is said of a thread and its process beyond their numbers and the thread's name.
    Track,
}

impl PassthroughKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Category,
        Self::Fields,
        Self::Arguments,
        Self::MemoryArguments,
        Self::Track,
    ];

    /// The kinds that go with events.
    pub const OF_EVENTS: [Self; 3] = [Self::Category, Self::Fields, Self::Arguments];
}
