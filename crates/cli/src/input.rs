//! Traces as commands read them: with a progress bar, and a warning where something had to be
//! repaired.

use std::io::{self, Write};
use std::path::Path;

use mindprof_formats::{
    ReadOptions, Reading, Result, UnknownArgs, read_trace_file_with, read_trace_from,
};

use crate::progress::Progress;

/// Stands for the standard input.
const STDIN: &str = "-";

/// Reads a trace with all that it says and warns of what had to be repaired.
pub(crate) fn read(path: &Path) -> Result<Reading> {
    let reading = read_quietly(path)?;
    warn(path, &reading);
    Ok(reading)
}

/// As [`read`], without what profiles do not know: for commands that write no trace.
pub(crate) fn read_known(path: &Path) -> Result<Reading> {
    let reading = read_with(path, UnknownArgs::Count)?;
    warn(path, &reading);
    Ok(reading)
}

/// Reads a trace without a word about repairs, for commands that tell of them themselves.
pub(crate) fn read_quietly(path: &Path) -> Result<Reading> {
    read_with(path, UnknownArgs::Keep)
}

fn warn(path: &Path, reading: &Reading) {
    for (_, _, sentence) in reading.repairs.iter() {
        // When stderr is gone there is no one left to warn.
        let _ = writeln!(io::stderr(), "warning: {}: {sentence}", path.display());
    }
}

fn read_with(path: &Path, unknown: UnknownArgs) -> Result<Reading> {
    let progress = Progress::new(path);
    let report = |done, total| progress.report(done, total);
    let options = ReadOptions {
        progress: Some(&report),
        unknown,
    };
    if path == Path::new(STDIN) {
        let read = read_trace_from(io::stdin().lock(), &options);
        return read.map_err(|error| error.at(Path::new("stdin")));
    }
    read_trace_file_with(path, &options)
}
