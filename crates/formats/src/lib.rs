//! Bytes in and out: Chrome traces are read into and written from a [`mindprof_model::Profile`],
//! averages become the text of a table.
//!
//! Microseconds, column widths and torch's names for things exist here and not further inside.

mod chrome;
mod error;
mod flamegraph;
mod folded;
mod number;
mod perfetto;
mod row;
mod shapes;
mod sort;
mod speedscope;
mod table;
mod whole_file;

pub use chrome::{
    Progress, ReadOptions, Reading, Repair, Repairs, TraceOptions, category_name, input_types,
    read_trace, read_trace_file, read_trace_file_with, read_trace_with, write_trace,
    write_trace_file, write_trace_file_with, write_trace_with,
};
pub use error::{Error, Result};
pub use flamegraph::{write_flamegraph, write_flamegraph_file};
pub use folded::{write_folded, write_folded_file};
pub use number::{TimeUnit, memory_text, share_text, time_text};
pub use perfetto::{write_perfetto, write_perfetto_file};
pub use row::{Row, Texts, add_percentiles, average_rows, device_name, event_rows, is_device_work};
pub use shapes::shapes_text;
pub use sort::SortBy;
pub use speedscope::{write_speedscope, write_speedscope_file};
pub use table::{NO_EVENTS, TableFacts, TableOptions, events_table, table, table_of_rows};
pub use whole_file::write_file;
