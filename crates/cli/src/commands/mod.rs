//! One module per command: what it takes, and what it does.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod info;
pub(crate) mod man;
pub(crate) mod memory;
pub(crate) mod run;
pub(crate) mod slim;
pub(crate) mod stacks;
pub(crate) mod table;
pub(crate) mod verify;
