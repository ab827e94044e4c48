//! The kinds of passthrough texts.

/// The kind of a passthrough text: what it belongs to, and which part of it the text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PassthroughKind {
    /// The exact category of an event, if its [`Category`](crate::Category) does not imply it.
    Category,
    /// Unknown fields of an event.
    Fields,
    /// Unknown arguments of an event.
    Arguments,
    /// Unknown arguments of a memory record.
    MemoryArguments,
    /// Metadata of a thread and its process beyond their ids and the thread's name.
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

    /// The kinds that belong to events.
    pub const OF_EVENTS: [Self; 3] = [Self::Category, Self::Fields, Self::Arguments];
}
