//! Output for people: tables, summaries and differences as text, flame graphs as SVG, and reports and
//! the memory timeline as HTML pages.
//!
//! Rows and names come from `mindprof_formats`, and conclusions from `mindprof_answers`. This crate
//! alone decides on column widths, display units and wording.
//!
//! ```
//! use mindprof_analyze::{Analysis, GroupBy, StackMetric, averages};
//! use mindprof_model::Timeline;
//! use mindprof_report::{TableOptions, table, write_flamegraph};
//!
//! let profile = Timeline::draw(|time| {
//!     time.scope("step", |time| {
//!         time.op("aten::mul", 30_000);
//!         time.op("aten::sum", 10_000);
//!     });
//! });
//! let analysis = Analysis::build(profile);
//!
//! let rows = averages(&analysis, GroupBy::default());
//! let text = table(&analysis, &rows, GroupBy::default(), &TableOptions::default());
//! assert!(text.contains("75.00%") && text.contains("30.000us"));
//! assert!(text.contains("Self CPU time total: 40.000us"));
//!
//! let mut picture = Vec::new();
//! write_flamegraph(&analysis, StackMetric::SelfCpuTime, &mut picture)?;
//! assert!(String::from_utf8_lossy(&picture).contains("aten::mul"));
//! # Ok::<(), mindprof_report::Error>(())
//! ```

mod advice;
mod annotated;
mod critical_path;
mod device;
mod diff;
mod error;
mod explain;
mod flamegraph;
mod functions;
mod grid;
mod headline;
mod info;
mod memory;
mod number;
mod page;
mod ranks;
mod run;
mod screen;
mod sentence;
mod steps;
mod table;
mod told;
mod verdict;
mod visible;
mod what_if;

pub use advice::{AdviceLayout, advice_text};
pub use annotated::annotated_text;
pub use critical_path::critical_path_text;
pub use device::{DeviceLayout, device_text};
pub use diff::{DiffLayout, diff_text, label_header};
pub use error::{Error, Result};
pub use explain::explain_text;
pub use flamegraph::{FlameGraph, draw_flamegraph, write_flamegraph, write_flamegraph_file};
pub use functions::{CodeLayout, functions_text, lines_text, modules_text};
pub use info::info_text;
pub use memory::{
    component_memory_text, memory_summary, snapshot_text, write_memory_timeline_file,
    write_memory_timeline_html, write_snapshot_html,
};
pub use number::{TimeUnit, memory_text, share_text, time_text};
pub use page::{
    Compared, PAGE_HEAD_BYTES, ReportOptions, is_page, overview_frame, write_ranks_page,
    write_ranks_page_file, write_report, write_report_file,
};
pub use ranks::{RanksLayout, ranks_text};
pub use run::{RunOptions, imports_text, run_facts, run_hints};
pub use screen::{ScreenEnd, screen_text};
pub use steps::{StepsLayout, steps_text};
pub use table::{
    NO_EVENTS, TABLE_COLUMNS, TableFacts, TableOptions, events_table, table, table_of_rows,
};
pub use told::told;
pub use verdict::{doubt_text, refusal_hint, refusal_text, verdict_text};
pub use visible::{visible, visible_lines};
pub use what_if::{not_changed_text, what_if_text};
