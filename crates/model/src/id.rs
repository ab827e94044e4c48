//! Ids: positions in the tables of one profile, each with its own type so that they cannot be
//! confused.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $noun:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// Returns the id of position `index`.
            ///
            /// # Panics
            /// Panics if `index` does not fit into 32 bits; no table grows that large.
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("tables hold fewer than 2^32 rows"))
            }

            /// Returns the position in the table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Returns the id as it is stored in columns and records.
            pub const fn to_raw(self) -> u32 {
                self.0
            }

            /// Returns the id for a number from [`Self::to_raw`].
            pub const fn from_raw(raw: u32) -> Self {
                Self(raw)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($noun, " {}"), self.0)
            }
        }
    };
}

id!(
    /// Indexes the string table of a profile.
    StringId,
    "string"
);
id!(
    /// Indexes the events of a profile, which lie in start order.
    EventId,
    "event"
);
id!(
    /// Indexes the threads of a profile: operating system threads and device streams.
    ThreadId,
    "thread"
);
id!(
    /// Indexes the table of input lists of a profile. Zero is the empty list.
    InputsId,
    "inputs"
);
id!(
    /// Indexes the stack table of a profile. Zero means that no stack was recorded.
    StackId,
    "stack"
);

id!(
    /// Locates a passthrough text: its offset in the packed texts of a profile.
    TextId,
    "text"
);

impl InputsId {
    /// No inputs, or inputs that were not recorded.
    pub const NONE: Self = Self(0);
}

impl StackId {
    /// No stack, or a stack that was not recorded.
    pub const NONE: Self = Self(0);
}
