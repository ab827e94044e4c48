//! Ids: positions in the tables of one profile, each with a type of its own so that they cannot be
//! mixed up.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $noun:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// Makes the id of position `index`.
            ///
            /// # Panics
            /// When `index` needs more than 32 bits: no table grows that far.
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

            /// Takes an id as it was stored by [`Self::to_raw`].
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
    /// Indexes the profile's string table.
    StringId,
    "string"
);
id!(
    /// Indexes the profile's events, which lie in start order.
    EventId,
    "event"
);
id!(
    /// Indexes the profile's threads: operating system threads and device streams.
    ThreadId,
    "thread"
);
id!(
    /// Indexes the profile's table of input lists. Zero is the empty list.
    InputsId,
    "inputs"
);
id!(
    /// Indexes the profile's stacks. Zero is "no stack was taken".
    StackId,
    "stack"
);

id!(
    /// Says where a text that a profile passes through begins among what is packed.
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
