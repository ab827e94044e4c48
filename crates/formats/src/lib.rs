//! Bytes in and out: Chrome traces are read into and written from a [`mindprof_model::Profile`],
//! averages become the text of a table.
//!
//! Microseconds, column widths and torch's names for things exist here and not further inside.

mod chrome;
mod error;
mod flows;
mod number;
mod perfetto;
mod row;
mod scan;
mod shapes;
mod sort;
mod table;
mod whole_file;

pub use chrome::{
    LeftOut, Progress, ReadOptions, Reading, Repair, Repairs, TraceOptions, category_name,
    input_types, read_trace, read_trace_file, read_trace_file_with, read_trace_with, write_trace,
    write_trace_file, write_trace_file_with, write_trace_with,
};
pub use error::{Compression, Error, Result};
pub use number::{TimeUnit, memory_text, share_text, time_text};
pub use perfetto::{
    is_perfetto_name, write_perfetto, write_perfetto_file, write_perfetto_file_with,
    write_perfetto_with,
};
pub use row::{Row, Texts, add_percentiles, average_rows, device_name, event_rows, is_device_work};
pub use shapes::shapes_text;
pub use sort::SortBy;
pub use table::{NO_EVENTS, TableFacts, TableOptions, events_table, table, table_of_rows};
pub use whole_file::write_file;
