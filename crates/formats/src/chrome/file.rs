//! Traces as files that are written: whole or absent, compressed by name.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use mindprof_model::Profile;

use super::{TraceOptions, write_trace_with};
use crate::{Error, Result};

/// Writes `profile` as a trace to a file, with gzip if its name ends in `.gz`.
///
/// Directories on the way are made. The file appears under its name when it is complete; if that
/// fails, what was there before stays.
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
    write_whole(profile, options, path).map_err(|error| error.at(path))
}

fn write_whole(profile: &Profile, options: &TraceOptions, path: &Path) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        // A pipe or a device cannot be replaced, only written to.
        Ok(found) if !found.is_file() => {
            let file = OpenOptions::new().write(true).open(path)?;
            return write_to(profile, options, path, file);
        }
        Ok(_) | Err(_) => {}
    }
    // Of a link, what it leads to is replaced and not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let part = part_path(&target);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&part)
        .map_err(Error::from)
        .and_then(|file| write_to(profile, options, path, file))
        .and_then(|()| Ok(fs::rename(&part, &target)?));
    if written.is_err() {
        // The first error is the one to tell; a part that stays behind is only litter.
        let _ = fs::remove_file(&part);
    }
    written
}

fn write_to(profile: &Profile, options: &TraceOptions, path: &Path, file: File) -> Result<()> {
    let name = path.to_string_lossy();
    let buffered = BufWriter::new(file);
    if !name.ends_with(".gz") {
        return write_trace_with(profile, &name, options, buffered);
    }
    let mut encoder = GzEncoder::new(buffered, Compression::default());
    write_trace_with(profile, &name, options, &mut encoder)?;
    Ok(encoder.finish()?.flush()?)
}

/// Returns a name beside `target` that no other writer uses.
fn part_path(target: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // Only the values must differ: nothing else is published with them.
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}-{number}.part", std::process::id()));
    target.with_file_name(name)
}
