//! Trace files in and out: Chrome's JSON is read and written, Perfetto's protocol buffers and torch's
//! execution traces are written.
//!
//! Readers turn bytes into a [`mindprof_model::Profile`] and know nothing about analysis. Writers
//! may ask `mindprof_analyze` for what a viewer needs, such as flow events and lanes.
//!
//! ```
//! use mindprof_trace::{Error, read_trace, write_perfetto, write_trace};
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

mod ascend;
mod chrome;
mod error;
mod event_list;
mod execution_trace;
mod files;
mod integers;
mod perfetto;
mod phase_counts;
mod read;
mod read_options;
mod readers;
mod reading;
mod repairs;
mod scan;
mod slim;
mod snapshot;
mod trace_format;

pub use chrome::{
    ARGUMENT_KEYS, EVENT_KEYS, EventOrder, TraceOptions, input_types, json_value, loss_key,
    write_trace, write_trace_with,
};
pub use error::{Error, Result, io_text};
pub use event_list::{write_event_list, write_event_list_file};
pub use execution_trace::{
    ExecutionTraceCheck, ExecutionTraceOptions, check_execution_trace, check_execution_trace_file,
    write_execution_trace_file,
};
pub use files::{Compression, Effort, FileError, write_compressed, write_file, write_file_with};
pub use integers::integers_text;
pub use perfetto::{write_perfetto, write_perfetto_file, write_perfetto_with};
pub use phase_counts::PhaseCounts;
pub use read::{
    Input, MemoryInput, read_memory_file, read_memory_from, read_snapshot, read_trace,
    read_trace_file, read_trace_file_with, read_trace_from, read_trace_with,
};
pub use read_options::{Progress, ReadOptions, UNPACKED_BYTES, UNPACKED_TIMES, UnknownArgs};
pub use reading::Reading;
pub use repairs::{Repair, Repairs};
pub use slim::{SlimForm, fitting_slim, slim_json, slim_metadata, write_slim};
pub use trace_format::{TraceFormat, write_named_trace_file, write_trace_file};
