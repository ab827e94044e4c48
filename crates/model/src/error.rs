//! What can be wrong with the parts a profile is built from.

use crate::{EventId, InputsId, StackId, StringId, ThreadId};

/// The reasons for which [`crate::ProfileBuilder::build`] refuses its parts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An event names a string that is not in the string table.
    #[error("{event} has the name {name}, expected an id below {strings}")]
    UnknownName {
        /// The event at fault.
        event: EventId,
        /// The id it holds.
        name: StringId,
        /// The number of strings there are.
        strings: usize,
    },
    /// An event ran on a thread that is not in the thread table.
    #[error("{event} ran on {thread}, expected an id below {threads}")]
    UnknownThread {
        /// The event at fault.
        event: EventId,
        /// The id it holds.
        thread: ThreadId,
        /// The number of threads there are.
        threads: usize,
    },
    /// A memory record is of a thread that is not in the thread table.
    #[error("a memory record is of {thread}, expected an id below {threads}")]
    UnknownMemoryThread {
        /// The id it holds.
        thread: ThreadId,
        /// The number of threads there are.
        threads: usize,
    },
    /// An event or memory record names a stack that is not in the stack table.
    #[error("{stack} is named, expected an id below {stacks}")]
    UnknownStack {
        /// The id it holds.
        stack: StackId,
        /// The number of stacks there are.
        stacks: usize,
    },
    /// An event names an input list that is not in the table of input lists.
    #[error("{event} was given {list}, expected an id below {inputs}")]
    UnknownInputs {
        /// The event at fault.
        event: EventId,
        /// The id it holds.
        list: InputsId,
        /// The number of input lists there are.
        inputs: usize,
    },
    /// An event was handed over with an end before its start.
    #[error("{event} ends before it begins")]
    EndBeforeStart {
        /// The event at fault.
        event: EventId,
    },
    /// An event's end lies beyond what a time can hold.
    #[error("{event} ends beyond the last nanosecond that can be told")]
    EndOverflow {
        /// The event at fault.
        event: EventId,
    },
}

/// The result of building a profile.
pub type Result<T> = std::result::Result<T, Error>;
