//! Traces as files that are written: compressed by name.

use std::path::Path;

use mindprof_model::Profile;

use super::{TraceOptions, write_trace_with};
use crate::{Result, write_file};

/// Writes `profile` as a trace to a file, as [`write_file`] does.
///
/// # Errors
/// When the file cannot be written; the error names it.
pub fn write_trace_file(profile: &Profile, path: &Path) -> Result<()> {
    write_trace_file_with(profile, &TraceOptions::default(), path)
}

/// As [`write_trace_file`], with options.
///
/// # Errors
/// When the file cannot be written; the error names it.
pub fn write_trace_file_with(profile: &Profile, options: &TraceOptions, path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    write_file(path, |out| write_trace_with(profile, &name, options, out))
}
