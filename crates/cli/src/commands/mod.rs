//! The commands, one module each: the arguments as a clap struct, and a `run` function.

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
