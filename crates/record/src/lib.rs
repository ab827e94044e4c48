//! How a profile is captured: scopes are written by the thread they happen on into that thread's
//! buffer.
//!
//! The host opens scopes through [`scope()`] and names them with [`Site`]; a [`Session`] is a
//! window over the one recording of the process. `stop` hands the buffers over,
//! [`Capture::assemble`] makes a `model::Profile` of them. Nothing here fails or panics into the
//! host: what cannot be kept is counted, and the count is in the profile.

mod assemble;
mod budget;
mod buffer;
mod capture;
mod chunk;
mod clock;
mod fork;
mod gate;
mod local;
mod memory;
mod name;
mod near;
mod nesting;
mod open;
mod recorder;
mod scope;
mod session;
mod stack;
mod storages;
mod sync;
mod thread_key;

pub use capture::Capture;
pub use clock::{TimeAxis, ticks};
pub use memory::memory;
pub use name::{Name, NameKind, Site};
pub use near::{Column, Kept, Near};
pub use scope::{OpenScope, Scope, is_profiling, is_recording, open, open_with, scope, scope_with};
pub use session::{Options, Session};
pub use stack::{
    Calls, Stack, StackSource, count_deep_calls, count_unseen_calls, open_call, recording_number,
    set_stack_source, wants_calls, wants_stacks,
};
pub use storages::{tensor_role, wants_storages};
pub use thread_key::ThreadKey;

/// The parts that the benchmark measures beside the whole: not an interface.
#[doc(hidden)]
pub mod floor {
    pub use crate::clock::ticks;
}
