//! Chrome traces, as torch's profiler writes them.

mod category;
mod collect;
mod event;
mod event_scanner;
mod file;
mod inputs;
mod integer;
mod keys;
mod numbers;
mod options;
mod phase_counts;
mod read;
mod repairs;
mod result;
mod text;
mod time;
mod track_facts;
mod write;

pub(crate) use category::{INSTANT, MEMORY, loss_key};
pub use category::{
    is_hidden as is_hidden_name, of_name as category_of_name, to_name as category_name,
};
pub(crate) use collect::each_entry;
pub use file::{
    read_trace, read_trace_file, read_trace_file_with, read_trace_from, write_trace_file,
};
pub(crate) use inputs::{dtype_name, inputs_lists};
pub use inputs::{dtype_of as dtype_of_name, input_types};
pub use keys::{ARGUMENT_KEYS, EVENT_KEYS};
pub use options::{Progress, ReadOptions, UNPACKED_BYTES, UNPACKED_TIMES, UnknownArgs};
pub use phase_counts::PhaseCounts;
pub use read::read_trace_with;
pub use repairs::{Repair, Repairs};
pub use result::Reading;
pub(crate) use text::{json_string, json_value};
pub(crate) use track_facts::{TrackFacts, facts_of};
pub use write::{EventOrder, TraceOptions, write_trace, write_trace_with};
