//! `mindprof ranks`: prints what the traces of all ranks of a job tell together.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use mindprof_formats::{RankFiles, counted, summarize_files};
use mindprof_ranks::{JobAnswer, Ranks};
use mindprof_report::{RanksLayout, ranks_text};

use super::rank_outputs::RankOutputs;
use super::summarize::summarize_input;
use crate::failure::{Outcome, advised, misused};
use crate::input::is_stdin;
use crate::output::{print, print_line, tell};
use crate::progress::{Busy, FilesProgress};
use crate::terminal::terminal_width;

const EXAMPLE: &str = "\
Example:
  mindprof ranks traces/
  mindprof ranks traces/*.json.gz --json
  mindprof ranks traces/ --html job.html
  mindprof ranks traces/ --trace job.pftrace --ranks 0,5

Each file is the trace of one rank, or a summary that `mindprof summarize`
wrote. A file that cannot be read is named on stderr, and the rest is answered.
The rank of a file is what its trace states, otherwise what its name contains,
as in rank3.json.

Clocks are aligned on the ends of collectives. A rank is slow if the work that
is not communication takes 5 % of a step more than on the median rank, in at
least five steps, and the others wait for it.

Exit codes: 0 success, 1 some files could not be read, 2 none could be read,
failure or usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct RanksArgs {
    /// Folders with the traces of all ranks, or the traces themselves; `-` reads one from stdin.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Read so many files at the same time [default: the number of processors]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Read the files on the threads of this process, or with mindprof's Python package on
    /// processes, or on the workers of a Ray or Dask cluster.
    #[arg(long, value_name = "ENGINE", default_value = "threads", value_parser = ["threads", "processes", "ray", "dask"])]
    on: String,

    #[command(flatten)]
    files: RankOutputs,

    #[command(flatten)]
    shown: Shown,
}

/// How the answers are shown. Commands about ranks share it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Shown {
    /// List at most N rows of each table; --json lists more.
    #[arg(long, value_name = "N", default_value_t = 8)]
    row_limit: usize,

    /// Limit the width, to at least 80; 0 means no limit [default: terminal width]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Shown {
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// Prints the answers about some ranks.
    pub(crate) fn print(&self, ranks: &Ranks) -> anyhow::Result<()> {
        let answer = {
            let _busy = Busy::new("comparing ranks".into());
            JobAnswer::build(ranks)
        };
        if self.json {
            print_line(&answer.json())?;
            return Ok(());
        }
        let width = self.width.or_else(terminal_width);
        let layout = RanksLayout {
            rows: self.row_limit,
            width: width.filter(|&width| width > 0),
        };
        print(&ranks_text(&answer, layout))?;
        Ok(())
    }
}

/// Prints the answers about the ranks of a job.
pub(crate) fn run(args: &RanksArgs) -> anyhow::Result<Outcome> {
    if args.on != "threads" {
        let message = format!("this program cannot read files on {}", args.on);
        let hint = "use the program of the Python package: pip install mindprof";
        return Err(misused(message, hint));
    }
    args.files.check()?;
    if args.files.needs_traces() && args.paths.iter().any(|path| is_stdin(path)) {
        let message = "--trace and --parquet read traces twice, which stdin does not allow";
        return Err(misused(message, "write the trace to a file, and name it"));
    }
    let paths = listed(&args.paths)?;
    let results = {
        let progress = FilesProgress::new(paths.len());
        let (files, streams): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.iter().cloned().partition(|path| !is_stdin(path));
        let mut results = summarize_files(&files, args.threads, &|done| progress.report(done));
        results.extend(streams.iter().map(|path| summarize_input(path)));
        results
    };
    let read: Vec<Option<Ranks>> = if args.files.needs_traces() {
        let read = results.iter().map(|result| result.as_ref().ok().cloned());
        read.collect()
    } else {
        Vec::new()
    };
    let (ranks, failed) = merged(results);
    if ranks.summaries().is_empty() {
        let message = format!(
            "none of {} could be read",
            counted(paths.len() as u64, "file")
        );
        return Err(advised(
            message,
            "pass the traces of the ranks, or a folder with them",
        ));
    }
    let files = paths.iter().zip(&read);
    let files = files.filter_map(|(path, ranks)| Some((path.as_path(), ranks.as_ref()?)));
    args.files.write(&files.collect::<Vec<_>>(), &ranks)?;
    args.shown.print(&ranks)?;
    Ok(if failed == 0 {
        Outcome::Fine
    } else {
        Outcome::Found
    })
}

/// Merges the summaries of readable files, and names the failures on stderr. Returns how many failed.
pub(crate) fn merged(results: Vec<mindprof_formats::Result<Ranks>>) -> (Ranks, usize) {
    let (mut parts, mut failed) = (Vec::with_capacity(results.len()), 0);
    for result in results {
        match result {
            Ok(part) => parts.push(part),
            Err(error) => {
                failed += 1;
                tell(&format!("warning: {error}"));
            }
        }
    }
    (Ranks::merge(parts), failed)
}

/// Returns the files behind the arguments: folders are searched.
fn listed(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let files = RankFiles::list(path)?;
        tell_others(path, &files.others);
        found.extend(files.found);
    }
    if found.is_empty() {
        let names: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let message = format!("{}: no trace in this folder", names.join(", "));
        return Err(advised(message, "name the files, which may have any name"));
    }
    Ok(found)
}

fn tell_others(folder: &Path, others: &[PathBuf]) {
    if let Some(first) = others.first() {
        let (folder, first) = (folder.display(), first.display());
        let count = counted(others.len() as u64, "file");
        tell(&format!(
            "note: {folder}: left out {count} not taken for a trace: {first}"
        ));
    }
}
