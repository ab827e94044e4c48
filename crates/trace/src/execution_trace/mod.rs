//! Execution traces: torch's JSON of every operator with its tensors, parents and values.
//!
//! `write` creates one from a recording that kept results; `check` reports the faults of one, be it
//! ours or torch's.

mod check;
mod objects;
mod schema;
mod values;
mod write;

pub use check::{ExecutionTraceCheck, check_execution_trace, check_execution_trace_file};
pub use write::{ExecutionTraceOptions, write_execution_trace_file};

/// The version of the format.
pub(crate) const SCHEMA: &str = "1.1.1-chakra.0.0.4";

/// The names of the nodes that represent the process and a thread.
pub(crate) const PROCESS_NODE: &str = "[pytorch|profiler|execution_trace|process]";
pub(crate) const THREAD_NODE: &str = "[pytorch|profiler|execution_trace|thread]";
