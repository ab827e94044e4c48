//! The report: one offline HTML page about a profile, with a pane for each subject.
//!
//! Panes and tables are HTML that Rust writes, so that the page says everything without scripts.
//! Events, stacks and long tables go into one compressed data block, from which the scripts in
//! `crates/report/page` draw the timeline and the flame graph. Conclusions come from
//! `mindprof_answers`: the page shows what the commands say.

mod about;
mod base64;
mod code;
mod columns;
mod compare;
mod compare_findings;
mod contents;
mod critical;
mod data;
mod dense;
mod engine;
mod events;
mod findings;
mod flames;
mod kernels;
mod links;
mod markup;
mod modules;
mod names;
mod operators;
mod overview;
mod ranks;
mod report;
mod security;
mod source;
mod stacks;
mod steps;
mod strings;
mod table;
#[cfg(test)]
mod tests;

pub use engine::{PAGE_HEAD_BYTES, is_page};
pub(crate) use engine::{Page, Pane};
pub(crate) use markup::escaped;
pub(crate) use modules::MEMORY;
pub use ranks::{write_ranks_page, write_ranks_page_file};
pub use report::{Compared, ReportOptions, overview_frame, write_report, write_report_file};
