//! The real torch as a host: its operators, ranges and allocations, by an observer of its own kind.
//!
//! libtorch is found in the running process, never linked: [`Symbols`] looks its functions up,
//! [`Probe`] finds out, on operators that the caller runs, where in torch's objects the facts lie,
//! and [`Observer`] then hears of every operator and opens the recorder's scopes for it. What is
//! not as expected ends in an [`Error`], before anything is attached. Where torch's own collector
//! records instead, [`KinetoLayout`] reads what it hands over.

mod callbacks;
mod context;
mod error;
mod inputs;
mod ivalue;
mod kineto;
mod kineto_facts;
mod kineto_inputs;
#[cfg(all(test, unix))]
mod kineto_stand_in;
mod kineto_symbols;
mod layout;
mod memory;
mod names;
mod observer;
mod probe;
mod raw_results;
mod roles;
mod samples;
mod self_read;
#[cfg(test)]
mod stand_in;
mod symbols;
mod tensor;
mod tensor_layout;
mod tensor_samples;
#[cfg(test)]
mod tests;
mod threads;

pub use error::{Error, Result};
pub use kineto_inputs::KnownValue;
pub use layout::Layout;
pub use memory::MemoryReport;
pub use observer::{Attachment, Observer, Wanted};
pub use probe::{Facts, Probe};
pub use raw_results::{
    NativeEvents, NativeLayout, RawEvent, RawEvents, RawResults, ReadOptions, ReferenceEvents,
    ThreadIdentity, read_raw_results,
};
pub use self_read::read_words;
pub use symbols::Symbols;
pub use tensor_samples::TensorSamples;
