//! torch as a framework: its operators, ranges and allocations, recorded by an observer that
//! libtorch calls itself.
//!
//! libtorch is found in the running process and never linked. [`Symbols`] looks up its functions,
//! [`Probe`] finds the facts in torch's objects with operators that the caller runs, and
//! [`Observer`] opens the recorder's scopes. Anything unexpected is an [`Error`] before anything is
//! attached. [`read_raw_results`] reads the results of torch's own collector.

mod callback_lock;
mod callbacks;
mod collectives;
mod context;
mod cupti;
mod device_callers;
mod device_join;
mod error;
mod held_tensors;
mod inputs;
mod ivalue;
mod kineto;
mod kineto_facts;
mod kineto_inputs;
mod kineto_session;
#[cfg(all(test, unix))]
mod kineto_stand_in;
mod kineto_symbols;
mod layout;
mod memory;
mod module_hierarchy;
mod names;
mod observer;
mod probe;
mod raw_results;
mod roles;
mod samples;
#[cfg(test)]
mod stand_in;
mod switches;
mod symbols;
mod tensor;
mod tensor_layout;
mod tensor_samples;
#[cfg(test)]
mod tests;
mod threads;

pub use callback_lock::watch_forks;
pub use cupti::{
    DeviceCollection, DeviceRecords, KeepRecords, Recorder, detach, other_threads_launch_graphs,
};
pub use device_callers::note_collecting_thread;
pub use device_join::{join_devices, join_records};
pub use error::{Error, Result};
pub use held_tensors::HeldTensor;
pub use kineto::ResultInMemory;
pub use kineto_inputs::KnownValue;
pub use kineto_session::kineto_is_active;
pub use layout::Layout;
pub use memory::MemoryReport;
pub use observer::{Attachment, Observer, Wanted};
pub use probe::{Facts, Probe};
pub use raw_results::{
    NativeEvents, NativeLayout, RawEvent, RawEvents, RawResults, ReadOptions, ReferenceEvents,
    ThreadIdentity, read_raw_results,
};
pub use switches::has_forward_arrows;
pub use symbols::Symbols;
pub use tensor_samples::TensorSamples;
