//! The timeline as a file, whose name says which kind.

use std::path::Path;

use mindprof_analyze::{Analysis, MemoryPlace};
use mindprof_formats::{write_memory_timeline, write_memory_timeline_raw};
use mindprof_trace::write_file;

use crate::error::Result;

use super::page::write_memory_timeline_html;

/// Writes the memory timeline of a process on a device: a page if the name ends in `.html`, one row for each
/// change if it ends in `raw.json.gz`, points otherwise; compressed if it ends in `.gz`.
///
/// # Errors
/// When the file cannot be written; the error names it.
pub fn write_memory_timeline_file(
    analysis: &Analysis,
    place: MemoryPlace,
    path: &Path,
) -> Result<()> {
    let name = path.to_string_lossy();
    write_file(path, |out| {
        if name.ends_with(".html") {
            write_memory_timeline_html(analysis, place, out)
        } else if name.ends_with("raw.json.gz") {
            Ok(write_memory_timeline_raw(analysis, place, out)?)
        } else {
            Ok(write_memory_timeline(analysis, place, out)?)
        }
    })
}
