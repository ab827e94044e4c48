//! Chrome's JSON traces in the dialect of torch's profiler: the reader and the writer.

mod category;
mod collect;
mod event;
mod event_scanner;
mod inputs;
mod integer;
mod keys;
mod numbers;
mod read;
mod text;
mod time;
mod track_facts;
mod write;

pub use category::loss_key;
pub(crate) use collect::{each_entry, find_order, reorder};
pub use inputs::input_types;
pub(crate) use inputs::inputs_lists;
pub use keys::{ARGUMENT_KEYS, EVENT_KEYS};
pub(crate) use read::ChromeReader;
pub(crate) use text::json_string;
pub use text::json_value;
pub(crate) use time::nanoseconds_of;
pub(crate) use track_facts::{TrackFacts, facts_of};
pub use write::{EventOrder, TraceOptions, write_trace, write_trace_with};
