//! The files that `mindprof ranks` writes beside its text: a page, one trace of several ranks, and
//! Parquet.

use std::path::{Path, PathBuf};

use mindprof_formats::{
    Format, RankTrace, Written, counted, is_rank_archive, merge_rank_traces, write_rank_archive,
    write_ranks_parquet,
};
use mindprof_ranks::{Alignment, JobAnswer, Ranks, StepGrid};
use mindprof_report::write_ranks_page;

use crate::failure::{advised, misused};
use crate::output::{Output, tell};
use crate::progress::Busy;
use crate::replaced::page_place;

/// The options for files.
#[derive(Debug, clap::Args)]
pub(crate) struct RankOutputs {
    /// Write everything as a page to FILE, which needs no server and no network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write one trace of all ranks on one clock to FILE, such as job.pftrace or job.json.gz; job.tar
    /// is an archive for Perfetto, which needs less memory.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Write the events of each rank to FOLDER/rank=0/part.parquet and so on.
    #[arg(long, value_name = "FOLDER")]
    parquet: Option<PathBuf>,

    /// Put only these ranks into --trace and --parquet, such as 0,5 or 0-7.
    #[arg(long, value_name = "LIST")]
    ranks: Option<String>,
}

impl RankOutputs {
    /// Returns an error if the options do not fit together.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.chosen()?;
        self.trace
            .as_deref()
            .filter(|path| !is_rank_archive(path))
            .map_or(Ok(()), |path| trace_format(path).map(drop))?;
        if self.ranks.is_some() && !self.needs_traces() {
            let message = "--ranks chooses what --trace and --parquet write";
            return Err(misused(message, "add one of them"));
        }
        Ok(())
    }

    /// Returns whether the events of traces are written, which summaries do not have.
    pub(crate) const fn needs_traces(&self) -> bool {
        self.trace.is_some() || self.parquet.is_some()
    }

    /// Writes the files. `files` are those that could be read, `job` is all of them together.
    pub(crate) fn write(&self, files: &[(&Path, &Ranks)], job: &Ranks) -> anyhow::Result<()> {
        if let Some(path) = &self.html {
            write_page(&Output::of(path), job)?;
        }
        if !self.needs_traces() {
            return Ok(());
        }
        let traces = self.traces(files, job)?;
        if let Some(path) = &self.trace {
            write_trace(&Output::of(path), &traces)?;
        }
        if let Some(folder) = &self.parquet {
            let written = {
                let _busy = Busy::new(format!("writing {}", folder.display()));
                write_ranks_parquet(&traces, folder)?
            };
            let count = counted(written.len() as u64, "file");
            tell(&format!("wrote {} ({count})", folder.display()));
        }
        Ok(())
    }

    /// Returns the traces of the chosen ranks.
    fn traces(&self, files: &[(&Path, &Ranks)], job: &Ranks) -> anyhow::Result<Vec<RankTrace>> {
        let mut traces = RankTrace::of_files(files, job);
        if let Some(chosen) = self.chosen()? {
            for rank in &chosen {
                if !traces.iter().any(|trace| trace.rank == Some(*rank)) {
                    let message = format!("there is no trace of rank {rank}");
                    return Err(advised(message, "choose other ranks with --ranks"));
                }
            }
            traces.retain(|trace| trace.rank.is_some_and(|rank| chosen.contains(&rank)));
        }
        if traces.is_empty() {
            let message = "there are no traces, only summaries, which have no events";
            return Err(advised(message, "pass the traces of the ranks"));
        }
        Ok(traces)
    }

    fn chosen(&self) -> anyhow::Result<Option<Vec<u32>>> {
        self.ranks.as_deref().map(ranks_of).transpose()
    }
}

/// Returns the ranks of a list such as `0,5` or `0-7`.
fn ranks_of(text: &str) -> anyhow::Result<Vec<u32>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>(), last.trim().parse::<u32>());
        first
            .ok()
            .zip(last.ok())
            .filter(|(first, last)| first <= last)
    };
    let mut ranks = Vec::new();
    for part in text.split(',') {
        let Some((first, last)) = range(part) else {
            let message = format!("--ranks {text}: `{part}` is no rank and no range of ranks");
            return Err(misused(message, "write a list such as 0,5 or 0-7"));
        };
        ranks.extend(first..=last);
    }
    Ok(ranks)
}

/// Returns the format of a trace by the name of its file.
fn trace_format(path: &Path) -> anyhow::Result<Format> {
    if let Some(format @ (Format::Chrome | Format::Perfetto)) = Format::of(path) {
        return Ok(format);
    }
    let message = format!("{}: not the name of a trace", path.display());
    let hint = "name it .pftrace or .tar for Perfetto, or .json or .json.gz for a Chrome trace";
    Err(misused(message, hint))
}

fn write_page(out: &Output, job: &Ranks) -> anyhow::Result<()> {
    page_place(out)?;
    let (answer, grid) = (JobAnswer::build(job), StepGrid::build(job));
    let ((), bytes) = out.write(None, |file| write_ranks_page(&answer, &grid, file))?;
    out.tell_written(bytes, "page");
    Ok(())
}

fn write_trace(out: &Output, traces: &[RankTrace]) -> anyhow::Result<()> {
    for trace in traces {
        if trace.alignment == Alignment::Unknown && traces.len() > 1 {
            let path = trace.path.display();
            tell(&format!(
                "warning: {path}: its clock is not known: its times are as recorded"
            ));
        }
    }
    let (name, ranks) = (out.name(), counted(traces.len() as u64, "rank"));
    if is_rank_archive(Path::new(&name)) {
        let (events, bytes) = out.write(None, |file| write_rank_archive(traces, file))?;
        out.tell_written(bytes, &format!("{ranks}, {}", counted(events, "event")));
        return Ok(());
    }
    let format = trace_format(Path::new(&name))?;
    let profile = {
        let _busy = Busy::new(format!("merging {}", counted(traces.len() as u64, "trace")));
        merge_rank_traces(traces)?
    };
    let (Written { count, unit, notes }, bytes) =
        out.write(None, |file| format.write(profile, &name, file))?;
    for note in notes {
        tell(&format!("warning: {name}: {note}"));
    }
    out.tell_written(bytes, &format!("{ranks}, {}", counted(count, unit)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ranks_have_numbers_and_ranges() {
        assert_eq!(ranks_of("0,5").unwrap(), [0, 5]);
        assert_eq!(ranks_of("2-4, 9").unwrap(), [2, 3, 4, 9]);
        for wrong in ["", "a", "4-2", "1,,2", "-1"] {
            assert!(ranks_of(wrong).is_err(), "{wrong}");
        }
    }
}
