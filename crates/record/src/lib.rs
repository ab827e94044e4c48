//! Records profiles: each thread writes the scopes it runs into a buffer of its own.
//!
//! A framework opens scopes with [`scope()`] and names them with [`Site`]. A [`Session`] is a
//! window over the one recording of the process; `stop` hands the buffers over as a [`Capture`],
//! and [`Capture::assemble`] turns them into a `model::Profile`. Recording never fails and never
//! panics into the program: events that cannot be kept are counted, and the profile carries the
//! count.
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

mod arguments;
mod assemble;
mod budget;
mod buffer;
mod capture;
mod chunk;
mod clock;
mod diffing_writer;
mod fast_thread_local;
mod forgotten;
mod fork;
mod gate;
mod inputs;
mod limit;
mod local;
mod lost;
mod memory;
mod name;
mod nesting;
mod open;
mod options;
mod pace;
mod raw;
mod recorder;
mod registry;
mod results;
mod roles;
mod sampled_calls;
mod samples;
mod scope;
mod session;
mod stack;
mod storages;
mod sync;
mod thread_key;
mod thread_table;

pub use arguments::ARGUMENT_NUMBER;
pub use buffer::ThreadHandle;
pub use capture::{Capture, Join, WindowEvents};
pub use clock::{TimeAxis, ticks};
pub use inputs::InputsRewriter;
pub use limit::Only;
pub use memory::{device_memory, memory};
pub use name::{Name, NameKind, Site};
pub use options::{Calls, Keep, Options};
pub use pace::recording_pace;
pub use raw::{MAX_SEQUENCE, MemoryDevice, Stack};
pub use results::{result, wants_results};
pub use roles::{tensor_role, wants_held_tensors, wants_storages};
pub use samples::{SAMPLE_INTERVAL, add_sample, count_dropped_sample};
pub use scope::{
    OpenScope, Scope, is_profiling, is_recording, open, open_call, open_range, open_with, scope,
    scope_with, wants_inputs, wants_module_hierarchies,
};
pub use session::Session;
pub use stack::{
    count_deep_calls, count_unseen_calls, recording_number, set_stack_source, wants_all_calls,
    wants_calls, wants_stacks,
};
pub use thread_key::ThreadKey;
pub use thread_table::ThreadTable;

/// The expansion of [`fast_thread_local!`]: not an interface.
#[doc(hidden)]
pub mod expansion {
    pub use crate::fast_thread_local::{CacheColumn, FastThreadLocal, ThreadValue};
}
