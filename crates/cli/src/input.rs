//! Traces as commands read them: with a progress bar, and a warning where something had to be
//! repaired.

use std::fs;
use std::io;
use std::path::Path;

use mindprof_analyze::Analysis;
use mindprof_report::visible;
use mindprof_trace::{
    FileError, ReadOptions, Reading, Repairs, Result, UnknownArgs, read_trace_file_with,
    read_trace_from,
};

use crate::failure::advised;
use crate::output::{Output, tell};
use crate::progress::{Busy, Progress};
use crate::units;

/// Stands for the standard input.
const STDIN: &str = "-";

/// How much of a trace is read.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ReadLimits {
    /// How much text of a trace is read, unpacked: 500MB, 20GiB [default: all that is not compressed,
    /// and of the rest 1GiB or 100 times the file, what is more]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_bytes: Option<u64>,
}

/// Refuses to write over the trace that is read, which would be gone.
pub(crate) fn refuse_input(trace: &Path, out: &Output) -> anyhow::Result<()> {
    let Output::File(out) = out else {
        return Ok(());
    };
    let place = |path: &Path| fs::canonicalize(path).ok();
    if place(trace).is_none_or(|trace| place(out) != Some(trace)) {
        return Ok(());
    }
    let message = format!("{}: is the trace itself", out.display());
    Err(advised(
        message,
        "give another name; the trace would be replaced",
    ))
}

/// Reads a trace with all that it says and warns of what had to be repaired.
pub(crate) fn read(path: &Path, limits: ReadLimits) -> Result<Reading> {
    let reading = read_quietly(path, limits)?;
    warn(path, &reading);
    Ok(reading)
}

/// As [`read`], without what profiles do not know: for commands that write no trace.
fn read_known(path: &Path, limits: ReadLimits) -> Result<Reading> {
    let reading = read_with(path, limits, UnknownArgs::Count)?;
    warn(path, &reading);
    Ok(reading)
}

/// As [`read_known`], with what is to be known of the events.
pub(crate) fn read_analysis(path: &Path, limits: ReadLimits) -> Result<Analysis> {
    read_repaired(path, limits).map(|(analysis, _)| analysis)
}

/// As [`read_analysis`], with what had to be repaired.
pub(crate) fn read_repaired(path: &Path, limits: ReadLimits) -> Result<(Analysis, Repairs)> {
    let reading = read_known(path, limits)?;
    let _busy = Busy::new("looking at the events".into());
    Ok((Analysis::build(reading.profile), reading.repairs))
}

/// Reads a trace without a word about repairs, for commands that tell of them themselves.
pub(crate) fn read_quietly(path: &Path, limits: ReadLimits) -> Result<Reading> {
    read_with(path, limits, UnknownArgs::Keep)
}

fn warn(path: &Path, reading: &Reading) {
    for (_, _, sentence) in reading.repairs.iter() {
        tell(&format!("warning: {}: {sentence}", path.display()));
    }
    for (name, count) in &reading.unknown_categories {
        let events = units::count(*count, "event");
        let name = visible(name);
        tell(&format!(
            "warning: {}: {events} of the unknown category `{name}` shown as the host's",
            path.display()
        ));
    }
    for (_, count, what) in reading.left_out.iter() {
        tell(&format!(
            "warning: {}: {count} {what} would take too much memory and are left out",
            path.display()
        ));
    }
}

fn read_with(path: &Path, limits: ReadLimits, unknown: UnknownArgs) -> Result<Reading> {
    let progress = Progress::new(path);
    let report = |done, total| progress.report(done, total);
    let options = ReadOptions {
        progress: Some(&report),
        unknown,
        max_bytes: limits.max_bytes,
    };
    if path == Path::new(STDIN) {
        let read = read_trace_from(io::stdin().lock(), &options);
        return read.map_err(|error| error.at(Path::new("stdin")));
    }
    read_trace_file_with(path, &options)
}
