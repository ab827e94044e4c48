//! Input of commands: reads a trace from a file or stdin, with a progress bar.
//!
//! Repairs, unknown categories and omitted records are printed as warnings on stderr, except by
//! [`read_quietly`].

use std::fs;
use std::io;
use std::path::Path;

use mindprof_analyze::Analysis;
use mindprof_answers::Completeness;
use mindprof_report::visible;
use mindprof_trace::{
    FileError, MemoryInput, ReadOptions, Reading, Result, UnknownArgs, read_memory_file,
    read_memory_from, read_trace_file_with, read_trace_from,
};

use mindprof_formats::counted;

use crate::failure::advised;
use crate::output::{Output, tell};
use crate::progress::{Busy, Progress};
use crate::units;

/// The path that means stdin.
const STDIN: &str = "-";

/// Returns whether a path means stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

/// The limit on decompressed input. All commands that read a trace share it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ReadLimits {
    /// Limit the decompressed size of a trace, such as 20GiB [default: unlimited; for a compressed
    /// file 1GiB or 100 times its size, whichever is larger]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_bytes: Option<u64>,
}

/// Returns an error if the output would replace the trace that is read.
pub(crate) fn refuse_input(trace: &Path, out: &Output) -> anyhow::Result<()> {
    let Output::File(out) = out else {
        return Ok(());
    };
    let place = |path: &Path| fs::canonicalize(path).ok();
    if place(trace).is_none_or(|trace| place(out) != Some(trace)) {
        return Ok(());
    }
    let message = format!("{}: input and output are the same file", out.display());
    Err(advised(message, "write to another file"))
}

/// Reads a trace, including data that only a rewritten trace needs, and prints warnings.
pub(crate) fn read(path: &Path, limits: ReadLimits) -> Result<Reading> {
    let reading = read_quietly(path, limits)?;
    warn(path, &reading);
    Ok(reading)
}

/// Reads a trace without unknown data, for commands that do not write traces, and prints warnings.
fn read_known(path: &Path, limits: ReadLimits) -> Result<Reading> {
    let reading = read_with(path, limits, UnknownArgs::Count)?;
    warn(path, &reading);
    Ok(reading)
}

/// Reads and analyzes a trace, and prints warnings.
pub(crate) fn read_analysis(path: &Path, limits: ReadLimits) -> Result<Analysis> {
    Ok(analyzed(read_known(path, limits)?))
}

/// Analyzes a trace that was read.
pub(crate) fn analyzed(reading: Reading) -> Analysis {
    let _busy = Busy::new("analyzing events".into());
    Analysis::build(reading.profile)
}

/// Reads a trace without unknown data, or a memory snapshot, and prints warnings.
pub(crate) fn read_memory(path: &Path, limits: ReadLimits) -> Result<MemoryInput> {
    let input = with_options(path, limits, UnknownArgs::Count, |options| {
        if is_stdin(path) {
            let read = read_memory_from(io::stdin().lock(), options);
            return read.map_err(|error| error.at(Path::new("stdin")));
        }
        read_memory_file(path, options)
    })?;
    if let MemoryInput::Trace(reading) = &input {
        warn(path, reading);
    }
    Ok(input)
}

/// Reads and analyzes a trace with the arguments of kernels and copies, such as grids and bytes, and
/// prints warnings. They are among the data that is otherwise kept only to write a trace again.
pub(crate) fn read_whole_analysis(path: &Path, limits: ReadLimits) -> Result<Analysis> {
    let reading = read_with(path, limits, UnknownArgs::Describe)?;
    warn(path, &reading);
    Ok(analyzed(reading))
}

/// Reports on stderr that a trace is a part of its recording, as one that `run` has bounded.
pub(crate) fn tell_part(path: &Path, analysis: &Analysis) {
    if let Some((kept, events)) = Completeness::cut_of(analysis.profile()) {
        let (path, events) = (path.display(), counted(events, "event"));
        tell(&format!(
            "note: {path}: this is a part of the recording: {kept} of {events}"
        ));
    }
}

/// Reads a trace without printing warnings, for commands whose result includes them.
pub(crate) fn read_quietly(path: &Path, limits: ReadLimits) -> Result<Reading> {
    read_with(path, limits, UnknownArgs::Keep)
}

fn warn(path: &Path, reading: &Reading) {
    for source in &reading.sources {
        tell(&format!("note: {}: {source}", path.display()));
    }
    for (_, _, sentence) in reading.repairs.iter() {
        tell(&format!("warning: {}: {sentence}", path.display()));
    }
    for (name, count) in &reading.unknown_categories {
        let events = counted(*count, "event");
        let name = visible(name);
        tell(&format!(
            "warning: {}: {events} of the unknown category `{name}`, shown as CPU events",
            path.display()
        ));
    }
    for (_, count, what) in reading.left_out.iter() {
        tell(&format!(
            "warning: {}: {count} {what} omitted: they would take too much memory",
            path.display()
        ));
    }
}

fn read_with(path: &Path, limits: ReadLimits, unknown: UnknownArgs) -> Result<Reading> {
    with_options(path, limits, unknown, |options| {
        if is_stdin(path) {
            let read = read_trace_from(io::stdin().lock(), options);
            return read.map_err(|error| error.at(Path::new("stdin")));
        }
        read_trace_file_with(path, options)
    })
}

/// Reads with the limits of the command and a progress bar.
fn with_options<T>(
    path: &Path,
    limits: ReadLimits,
    unknown: UnknownArgs,
    read: impl FnOnce(&ReadOptions<'_>) -> Result<T>,
) -> Result<T> {
    let progress = Progress::new(path);
    let report = |done, total| progress.report(done, total);
    read(&ReadOptions {
        progress: Some(&report),
        unknown,
        max_bytes: limits.max_bytes,
    })
}
