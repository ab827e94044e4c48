//! What a trace file says beyond what a profile knows: texts that go with events and memory
//! records, and events of kinds that a profile has no other place for.
//!
//! They are kept for who writes the profile again. What they mean is between the reader and the
//! writer of a format.

mod args;
mod kind;
mod unknown_event;

pub use args::{PassthroughArgs, PassthroughWalk};
pub use kind::PassthroughKind;
pub use unknown_event::UnknownEvent;
