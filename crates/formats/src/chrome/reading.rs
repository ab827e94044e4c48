//! What reading a trace is asked for and what it gives.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use mindprof_model::Profile;

use super::phase_counts::PhaseCounts;
use super::read::{read_from, read_trace_with};
use super::repairs::Repairs;
use crate::{Error, Result};

/// How a trace is read.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Is told now and then how many of the file's bytes were read, and how many there are.
    pub progress: Option<Progress<'a>>,
    /// What becomes of what the trace says beyond what profiles know.
    pub unknown: Unknown,
}

/// What becomes of what a trace says beyond what profiles know, such as counters and arguments of
/// kernels. It is looked at and repaired alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// It is kept, for who writes the trace again.
    #[default]
    Keep,
    /// It is counted, for who does not: that takes less memory. Numbers of events by which no
    /// other is tied to them are not kept either.
    Count,
}

/// Takes the bytes of a file that were read so far, and all that there are (zero when it is not
/// known).
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

impl fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ReadOptions")
            .field("progress", &self.progress.is_some())
            .field("unknown", &self.unknown)
            .finish()
    }
}

/// A trace that was read: the profile, and what had to be put right for it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The profile.
    pub profile: Profile,
    /// What was wrong with the trace, by kind and number; empty for a sound one.
    pub repairs: Repairs,
    /// What the profile keeps as it is without knowing what it means, such as counters.
    pub set_aside: PhaseCounts,
    /// What would have been set aside too, but took too large a part of the trace.
    pub left_out: PhaseCounts,
}

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
