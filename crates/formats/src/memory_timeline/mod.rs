//! The memory timeline as JSON: torch's two layouts, and a summary.
//!
//! All of them are views of [`mindprof_analyze::MemoryTimeline`]. Only times are converted here.

mod json;
mod points;
mod summary;

#[cfg(test)]
mod tests;

pub use json::{write_memory_timeline, write_memory_timeline_raw};
pub use points::{MemoryPoints, memory_category_name};
pub use summary::{frame_texts, holder_name, memory_summary_json, unseen_name};
