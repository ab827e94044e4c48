//! Bytes in and out, for programs: traces are read into a [`mindprof_model::Profile`] and written
//! as Chrome's, Perfetto's and speedscope's; stacks as folded lines; events and rows as columns for
//! Arrow and Parquet; all else as JSON.
//!
//! What is made for eyes is in `report`.
//!
//! ```
//! use mindprof_formats::{Error, read_trace, write_perfetto, write_trace};
//! use mindprof_model::Timeline;
//!
//! let profile = Timeline::draw(|time| time.op("aten::mul", 1_500));
//!
//! let mut json = Vec::new(); // Chrome's format, which torch.profiler writes too
//! write_trace(&profile, "trace.json", &mut json)?;
//!
//! let again = read_trace(&json)?; // plain, gzip or zstd
//! let [event] = again.events() else { panic!("one event was written") };
//! assert_eq!(again.name(event), "aten::mul");
//! assert_eq!(event.duration.0, 1_500);
//!
//! let mut perfetto = Vec::new();
//! write_perfetto(&again, &mut perfetto)?;
//! assert!(perfetto.len() < json.len());
//! # Ok::<(), Error>(())
//! ```

mod arrow;
mod chrome;
mod columns;
mod compression;
mod csv;
mod device;
mod diff;
mod error;
mod event_list;
mod execution_trace;
mod folded;
mod format;
mod gzip;
mod info;
mod memory_timeline;
mod parquet;
mod part_file;
mod part_name;
mod paths;
mod perfetto;
mod place;
mod row;
mod run_ranges;
mod scan;
mod shapes;
mod slim;
mod sort;
mod speedscope;
mod table_json;
mod whole_file;
mod zstd;

pub use arrow::{record_batch, write_arrow};
pub use chrome::{
    ARGUMENT_KEYS, EVENT_KEYS, EventOrder, PhaseCounts, Progress, ReadOptions, Reading, Repair,
    Repairs, TraceOptions, UNPACKED_BYTES, UNPACKED_TIMES, UnknownArgs, category_name,
    category_of_name, dtype_of_name, input_types, is_hidden_name, read_trace, read_trace_file,
    read_trace_file_with, read_trace_from, read_trace_with, write_trace, write_trace_file,
    write_trace_with,
};
pub use columns::{
    Column, Values, average_columns, event_columns, external_id, int_list_values, text_list_values,
    text_values,
};
pub use compression::{Compression, Effort, write_compressed};
pub use csv::write_csv;
pub use device::{
    device_name, is_device_work, memory_device, memory_device_name, memory_place_name,
};
pub use diff::{change_state, diff_json, measure_name};
pub use error::{Error, Result};
pub use event_list::{write_event_list, write_event_list_file};
pub use execution_trace::{
    ExecutionTraceCheck, ExecutionTraceOptions, check_execution_trace, check_execution_trace_file,
    write_execution_trace_file,
};
pub use folded::{
    STACK_METRICS, folded_frame, stack_metric, write_folded, write_folded_file,
    write_folded_with_short,
};
pub use format::{Format, NO_STACKS, Written, cut_levels, write_named_trace_file};
pub use info::{Info, verify_execution_trace_json, verify_json};
pub use memory_timeline::{
    MemoryPoints, frame_texts, holder_name, memory_category_name, memory_summary_json, unseen_name,
    write_memory_timeline, write_memory_timeline_raw,
};
pub use parquet::{write_parquet, write_parquet_file};
pub use paths::{FoldedLines, PATH_LEVELS, paths_json, write_callers, write_paths};
pub use perfetto::{write_perfetto, write_perfetto_file, write_perfetto_with};
pub use place::Place;
pub use row::{Row, RowOptions, Texts, average_rows, event_rows, self_totals};
pub use run_ranges::RunRanges;
pub use shapes::shapes_text;
pub use slim::{SLIM_KEY, SlimForm, fitting_slim, slim_json, write_slim};
pub use sort::SortBy;
pub use speedscope::{write_speedscope, write_speedscope_file};
pub use table_json::table_json;
pub use whole_file::{write_file, write_file_with};
