//! Traces as files: read whatever their names, and written compressed by name.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use mindprof_model::Profile;

use super::options::ReadOptions;
use super::read::{read_from, read_trace_with};
use super::result::Reading;
use super::write::write_trace;
use crate::error::{Error, Result};
use crate::whole_file::write_file;

/// Reads the trace in a file, compressed or not whatever its name.
///
/// # Errors
/// When the file cannot be read or holds no trace; the error names the file.
pub fn read_trace_file(path: &Path) -> Result<Profile> {
    Ok(read_trace_file_with(path, &ReadOptions::default())?.profile)
}

/// As [`read_trace_file`], with options, and with what was wrong with the trace.
///
/// # Errors
/// When the file cannot be read or holds no trace; the error names the file.
pub fn read_trace_file_with(path: &Path, options: &ReadOptions<'_>) -> Result<Reading> {
    let read = || {
        let file = File::open(path)?;
        let total = file.metadata()?.len();
        read_from(file, total, options)
    };
    read().map_err(|error: Error| error.at(path))
}

/// As [`read_trace_file_with`], of what comes from a pipe or the like.
///
/// # Errors
/// When it cannot be read or is no trace.
pub fn read_trace_from(input: impl Read, options: &ReadOptions<'_>) -> Result<Reading> {
    read_from(input, 0, options)
}

/// Reads a trace from its bytes, compressed or not.
///
/// # Errors
/// When the bytes are no trace; the error says where that shows.
pub fn read_trace(bytes: &[u8]) -> Result<Profile> {
    Ok(read_trace_with(bytes, &ReadOptions::default())?.profile)
}

/// Writes `profile` as a trace to a file, as [`write_file`] does.
///
/// # Errors
/// When the file cannot be written; the error names it.
pub fn write_trace_file(profile: &Profile, path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    write_file(path, |out| write_trace(profile, &name, out))
}
