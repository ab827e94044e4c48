//! The memory timeline as a file whose name selects the format.

use std::path::Path;

use mindprof_analyze::{Analysis, MemoryPlace};
use mindprof_formats::{write_memory_timeline, write_memory_timeline_raw};
use mindprof_trace::write_file;

use crate::error::Result;

use super::page::write_memory_timeline_html;

/// Writes the memory timeline of a process on a device to a file.
///
/// A name that ends in `.html` selects the page, and one that ends in `raw.json.gz` selects JSON with
/// one row for each change. All other names select JSON with points. If the name ends in `.gz`, the
/// file is compressed.
///
/// # Errors
/// Fails if the file cannot be written. The error names the file.
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
