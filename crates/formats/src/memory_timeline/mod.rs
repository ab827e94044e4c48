//! The memory timeline as files and text: torch's two kinds of JSON, a page, and a summary.
//!
//! All of them are views of [`mindprof_analyze::MemoryTimeline`]; nothing but times is converted
//! here.

mod file;
mod html;
mod json;
mod points;
mod summary;

#[cfg(test)]
mod tests;

pub use file::write_memory_timeline_file;
pub use html::write_memory_timeline_html;
pub use json::{write_memory_timeline, write_memory_timeline_raw};
pub use points::{MemoryPoints, memory_category_name};
pub use summary::{memory_summary, memory_summary_json};
