//! Raw results of torch's own collector, read into a part of a profile.
//!
//! A source implements [`RawEvents`]: [`NativeEvents`] over torch's memory, or a binding over the
//! accessors of torch's Python objects. [`read_raw_results`] applies torch's rules to either: which
//! events are scopes, calls or kernels, which thread they ran on, and how they are linked.

mod arguments;
mod callers;
mod launches;
mod native;
mod read;
mod source;
#[cfg(test)]
mod tests;

pub use native::{NativeEvents, NativeLayout};
pub use read::{RawResults, ReadOptions, ThreadIdentity, read_raw_results};
pub use source::{RawEvent, RawEvents, ReferenceEvents};
