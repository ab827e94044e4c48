//! Machine-readable output other than trace files: table rows, columns for Arrow, Parquet and CSV,
//! JSON documents, folded stacks and speedscope profiles.
//!
//! [`Format`] lists every file format that a profile can be converted to. Text and pictures for
//! people are in `mindprof_report`; trace files are in `mindprof_trace`.

mod arrow;
mod columns;
mod critical_path;
mod csv;
mod diff;
mod error;
mod folded;
mod format;
mod info;
mod memory_device;
mod memory_timeline;
mod parquet;
mod paths;
mod place;
mod rank_archive;
mod rank_files;
mod rank_parquet;
mod rank_trace;
mod row;
mod shapes;
mod sort;
mod speedscope;
mod table_json;

pub use arrow::record_batch;
pub use columns::{
    Column, Values, average_columns, event_columns, external_id, int_list_values, text_list_values,
    text_values,
};
pub use critical_path::write_critical_path;
pub use diff::{change_state, diff_json, measure_name};
pub use error::{Error, Result};
pub use folded::{
    STACK_METRICS, stack_metric, write_folded, write_folded_file, write_folded_with_short,
};
pub use format::{Format, NO_STACKS, Written, counted, cut_levels};
pub use info::{Info, verify_execution_trace_json, verify_json};
pub use memory_device::{memory_device, memory_device_name, memory_place_name};
pub use memory_timeline::{
    MemoryPoints, frame_texts, holder_name, memory_category_name, memory_summary_json, unseen_name,
    write_memory_timeline, write_memory_timeline_raw,
};
pub use parquet::write_parquet_file;
pub use paths::{FoldedLines, paths_json, write_callers, write_folded_paths, write_paths};
pub use place::Place;
pub use rank_archive::{is_rank_archive, write_rank_archive, write_rank_archive_file};
pub use rank_files::{
    RankFiles, read_ranks, read_ranks_from, summarize_bytes, summarize_file, summarize_files,
    summarize_stream,
};
pub use rank_parquet::write_ranks_parquet;
pub use rank_trace::{RankTrace, merge_rank_traces};
pub use row::{Row, RowOptions, average_rows, event_rows, self_totals};
pub use shapes::shapes_text;
pub use sort::SortBy;
pub use speedscope::{write_speedscope, write_speedscope_file};
pub use table_json::table_json;
