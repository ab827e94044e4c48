//! Data of a trace file that a profile does not model: unknown fields of events, memory records and
//! threads, and events of unknown kinds.
//!
//! They are kept as raw text for round-tripping. Only the reader and the writer of a format know
//! what they mean.

mod args;
mod kind;
mod unknown_event;

pub use args::{PassthroughArgs, PassthroughWalk};
pub use kind::PassthroughKind;
pub use unknown_event::UnknownEvent;
