//! Errors in the parts that a profile is built from.

use crate::{EventId, InputsId, StackId, StringId, ThreadId};

/// The reasons why [`crate::ProfileBuilder::build`] and [`crate::Part::check`] reject a part. Each
/// names the event and the id at fault, so that the source can be fixed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An event refers to a string that is not in the string table.
    #[error("{event} refers to {name}, expected an id below {strings}")]
    UnknownName {
        /// The event at fault.
        event: EventId,
        /// The id it holds.
        name: StringId,
        /// The number of strings in the table.
        strings: usize,
    },
    /// An event refers to a thread that is not in the thread table.
    #[error("{event} refers to {thread}, expected an id below {threads}")]
    UnknownThread {
        /// The event at fault.
        event: EventId,
        /// The id it holds.
        thread: ThreadId,
        /// The number of threads in the table.
        threads: usize,
    },
    /// A memory record refers to a thread that is not in the thread table.
    #[error("a memory record refers to {thread}, expected an id below {threads}")]
    UnknownMemoryThread {
        /// The id it holds.
        thread: ThreadId,
        /// The number of threads in the table.
        threads: usize,
    },
    /// An event or memory record refers to a stack that is not in the stack table.
    #[error("an event or memory record refers to {stack}, expected an id below {stacks}")]
    UnknownStack {
        /// The id it holds.
        stack: StackId,
        /// The number of stacks in the table.
        stacks: usize,
    },
    /// An event refers to an input list that is not in the table of input lists.
    #[error("{event} refers to {list}, expected an id below {inputs}")]
    UnknownInputs {
        /// The event at fault.
        event: EventId,
        /// The id it holds.
        list: InputsId,
        /// The number of input lists in the table.
        inputs: usize,
    },
    /// An event was passed with an end before its start.
    #[error("{event} ends before it begins")]
    EndBeforeStart {
        /// The event at fault.
        event: EventId,
    },
    /// Ranks hold different operators, because their recordings had different limits. Rows of the
    /// merged profile would be scaled wrongly.
    #[error(
        "ranks hold different operators, recorded with only={first} and only={other}: \
         record all ranks with the same limit, or look at each alone"
    )]
    DifferentLimits {
        /// The limit of the first rank, `None` if it has none.
        first: String,
        /// The limit of another rank.
        other: String,
    },
    /// The end of an event exceeds the largest representable time.
    #[error("{event} ends after the largest time that a profile can hold")]
    EndOverflow {
        /// The event at fault.
        event: EventId,
    },
}

/// The result of building a profile.
pub type Result<T> = std::result::Result<T, Error>;
