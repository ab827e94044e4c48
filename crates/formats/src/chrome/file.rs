//! Traces as files: compressed by name when written and by content when read.

use std::fs;
use std::path::Path;

use mindprof_model::Profile;

use super::{TraceOptions, read_trace, write_trace_with};
use crate::{Error, Result, write_file};

/// Reads the trace in a file, which may be compressed with gzip whatever its name.
///
/// # Errors
/// When the file cannot be read or holds no trace; the error names the file.
pub fn read_trace_file(path: &Path) -> Result<Profile> {
    fs::read(path)
        .map_err(Error::from)
        .and_then(|bytes| read_trace(&bytes))
        .map_err(|error| error.at(path))
}

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
