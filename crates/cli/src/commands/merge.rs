//! `mindprof merge`: merges summaries of ranks, and prints what they tell together.

use std::io;
use std::path::{Path, PathBuf};

use mindprof_formats::{counted, read_ranks, read_ranks_from};

use super::ranks::{Shown, merged};
use super::summarize::write_ranks;
use crate::failure::{Outcome, advised};
use crate::input::is_stdin;
use crate::output::Output;

const EXAMPLE: &str = "\
Example:
  mindprof merge *.ranks
  mindprof merge node1/*.ranks --out node1.ranks

The order of the summaries does not matter, and merged summaries can be merged
again: the bytes are the same. With --out, the merged summary is written and
nothing is printed unless --json is given.

Exit codes: 0 success, 1 some files could not be read, 2 none could be read,
failure or usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct MergeArgs {
    /// Summaries that `mindprof summarize` or `mindprof merge` wrote, which may be compressed; `-`
    /// reads stdin.
    #[arg(value_name = "PART", required = true)]
    parts: Vec<PathBuf>,

    /// Write the merged summary to FILE; `-` is stdout.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    shown: Shown,
}

/// Merges summaries.
pub(crate) fn run(args: &MergeArgs) -> anyhow::Result<Outcome> {
    let results = args.parts.iter().map(|path| {
        if is_stdin(path) {
            return read_ranks_from(io::stdin().lock(), Path::new("stdin"));
        }
        read_ranks(path)
    });
    let (ranks, failed) = merged(results.collect());
    if ranks.summaries().is_empty() {
        let message = format!(
            "none of {} could be read",
            counted(args.parts.len() as u64, "file")
        );
        return Err(advised(
            message,
            "write summaries with `mindprof summarize`",
        ));
    }
    if let Some(out) = &args.out {
        write_ranks(&Output::of(out), &ranks)?;
    }
    if args.out.is_none() || args.shown.is_json() {
        args.shown.print(&ranks)?;
    }
    Ok(if failed == 0 {
        Outcome::Fine
    } else {
        Outcome::Found
    })
}
