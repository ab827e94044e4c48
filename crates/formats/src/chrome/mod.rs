//! Chrome traces, as torch's profiler writes them.

mod category;
mod collect;
mod event;
mod file;
mod inputs;
mod read;
mod text;
mod time;
mod write;

pub(crate) use category::is_backward_wrapper;
pub(crate) use category::loss_key;
pub use category::to_name as category_name;
pub use file::{read_trace_file, write_trace_file, write_trace_file_with};
pub use inputs::input_types;
pub(crate) use inputs::inputs_lists;
pub use read::read_trace;
pub use write::{TraceOptions, write_trace, write_trace_with};
