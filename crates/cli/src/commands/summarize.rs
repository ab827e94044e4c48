//! `mindprof summarize`: sums up the trace of one rank in a small file.

use std::io;
use std::path::{Path, PathBuf};

use mindprof_formats::{Result, counted, summarize_file, summarize_stream};
use mindprof_ranks::Ranks;

use crate::failure::Outcome;
use crate::input::{is_stdin, refuse_input};
use crate::output::Output;
use crate::progress::Busy;

const EXAMPLE: &str = "\
Example:
  mindprof summarize rank3.json.gz --out 3.ranks
  mindprof merge *.ranks

A summary holds what `mindprof ranks` needs of a trace, in tens of kilobytes. It
is the way to spread a job over machines: sum up each trace where it lies, and
merge the summaries in one place. The answer is the same.

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct SummarizeArgs {
    /// Trace file of one rank; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// File to write; `-` is stdout.
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
}

/// Writes the summary of a trace.
pub(crate) fn run(args: &SummarizeArgs) -> anyhow::Result<Outcome> {
    let out = Output::of(&args.out);
    refuse_input(&args.trace, &out)?;
    let ranks = {
        let _busy = Busy::new(format!("reading {}", args.trace.display()));
        summarize_input(&args.trace)?
    };
    write_ranks(&out, &ranks)?;
    Ok(Outcome::Fine)
}

/// Sums up a trace or reads a summary, from a file or stdin.
pub(crate) fn summarize_input(path: &Path) -> Result<Ranks> {
    if is_stdin(path) {
        return summarize_stream(io::stdin().lock(), "stdin");
    }
    summarize_file(path)
}

/// Writes summaries to a file, and reports it.
pub(crate) fn write_ranks(out: &Output, ranks: &Ranks) -> anyhow::Result<()> {
    let bytes = ranks.to_bytes();
    let ((), written) = out.write(None, |file| {
        Ok::<_, mindprof_trace::Error>(file.write_all(&bytes)?)
    })?;
    out.tell_written(written, &counted(ranks.summaries().len() as u64, "rank"));
    Ok(())
}
