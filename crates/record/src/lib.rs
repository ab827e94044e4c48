//! How a profile is captured: scopes are written by the thread they happen on into that thread's
//! buffer.
//!
//! The host opens scopes through [`scope()`] and names them with [`Site`]; a [`Session`] is a
//! window over the one recording of the process. `stop` hands the buffers over,
//! [`Capture::assemble`] makes a `model::Profile` of them. Nothing here fails or panics into the
//! host: what cannot be kept is counted, and the count is in the profile.
//!
//! ```
//! use mindprof_record::{Options, Session, Site, scope};
//!
//! fn load() -> u32 {
//!     static LOAD: Site = Site::annotation("load");
//!     let _scope = scope(&LOAD);
//!     42
//! }
//!
//! load(); // nothing records, so this is not kept
//! let session = Session::start(Options::default());
//! assert_eq!(load(), 42);
//! let profile = session.stop().assemble();
//!
//! let names: Vec<_> = profile.events().iter().map(|event| profile.name(event)).collect();
//! assert_eq!(names, ["load"]);
//! assert_eq!(profile.loss().total(), 0);
//! ```

mod assemble;
mod budget;
mod buffer;
mod capture;
mod chunk;
mod clock;
mod diffing_writer;
mod fast_thread_local;
mod fork;
mod gate;
mod inputs;
mod local;
mod memory;
mod name;
mod nesting;
mod open;
mod options;
mod raw;
mod recorder;
mod registry;
mod results;
mod roles;
mod scope;
mod session;
mod stack;
mod storages;
mod sync;
mod thread_key;

pub use capture::Capture;
pub use clock::{TimeAxis, ticks};
pub use diffing_writer::DiffingWriter;
pub use fast_thread_local::{CacheColumn, FastThreadLocal, ThreadValue};
pub use inputs::InputsRewriter;
pub use memory::memory;
pub use name::{Name, NameKind, Site};
pub use options::{Calls, Options};
pub use raw::{MAX_SEQUENCE, Stack};
pub use results::{result, wants_results};
pub use roles::{tensor_role, wants_storages};
pub use scope::{
    OpenScope, Scope, is_profiling, is_recording, open, open_call, open_range, open_with, scope,
    scope_with, wants_inputs,
};
pub use session::Session;
pub use stack::{
    StackSource, count_deep_calls, count_unseen_calls, recording_number, set_stack_source,
    wants_calls, wants_stacks,
};
pub use thread_key::ThreadKey;

/// The parts that the benchmark measures beside the whole: not an interface.
#[doc(hidden)]
pub mod floor {
    pub use crate::clock::ticks;
}
