//! The traces of several ranks as one profile, on the clock of the first.
//!
//! Summaries have no events, so that the traces are read again. The merged profile holds all events
//! of the chosen ranks at the same time.

use std::path::{Path, PathBuf};

use mindprof_analyze::merge;
use mindprof_model::{Part, Profile};
use mindprof_ranks::{Alignment, Ranks};
use mindprof_trace::{FileError, ReadOptions, read_trace_file_with};

use crate::error::{Error, Result};
use crate::rank_files::is_summary;

/// The trace of one rank, and its place among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankTrace {
    /// The file.
    pub path: PathBuf,
    /// The rank, if it is known.
    pub rank: Option<u32>,
    /// How its clock relates to that of the first rank.
    pub alignment: Alignment,
}

impl RankTrace {
    /// Returns the traces of a job by rank, without those that are left out of the answers. Each
    /// file comes with its result of [`crate::summarize_files`], of which `job` was merged; files
    /// with merged summaries are not traces of one rank.
    pub fn of_files(files: &[(&Path, &Ranks)], job: &Ranks) -> Vec<Self> {
        let alignments = Alignment::of(job);
        let mut is_taken = vec![false; alignments.len()];
        let mut traces = Vec::new();
        for (path, ranks) in files {
            let [summary] = ranks.summaries() else {
                continue;
            };
            let equal = |other: &usize| job.summaries()[*other] == *summary;
            let begin = job.summaries().partition_point(|other| other < summary);
            let places = (begin..job.summaries().len()).take_while(equal);
            let Some(place) = places.into_iter().find(|&place| !is_taken[place]) else {
                continue;
            };
            is_taken[place] = true;
            if alignments[place] != Alignment::LeftOut {
                traces.push(Self {
                    path: path.to_path_buf(),
                    rank: summary.identity.rank,
                    alignment: alignments[place],
                });
            }
        }
        traces.sort_by_key(|trace| trace.rank.unwrap_or(u32::MAX));
        traces
    }

    /// Reads the events of the rank with the job's clock.
    fn read(&self) -> Result<Part> {
        if is_summary(&self.path) {
            return Err(Error::NoEvents.at(&self.path));
        }
        let reading = read_trace_file_with(&self.path, &ReadOptions::default())?;
        let mut part = Part::from(reading.profile);
        part.rank = self.rank;
        if let Alignment::Aligned(offset) = self.alignment {
            part.reference_unix_ns = part.reference_unix_ns.saturating_add_signed(offset);
        }
        Ok(part)
    }
}

/// Reads the traces of ranks into one profile.
///
/// # Errors
/// If a file cannot be read or is a summary; the error names the file. If the recordings of ranks
/// had different limits.
pub fn merge_rank_traces(traces: &[RankTrace]) -> Result<Profile> {
    let parts = traces.iter().map(RankTrace::read);
    let parts: Vec<Part> = parts.collect::<Result<_>>()?;
    merge(parts).map_err(|error| mindprof_trace::Error::from(error).into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::summarize_file;

    /// Five barriers end at the same time on both ranks, whose clocks are 700 us apart.
    fn trace(rank: u32, base_ns: u64) -> String {
        let events = (0..5).map(|number| {
            let (start, length) = (1_000 * number + 100 * u64::from(rank), 500 - 100 * u64::from(rank));
            format!(
                "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce\", \"pid\": 0, \
                 \"tid\": 7, \"ts\": {start}, \"dur\": {length}, \"args\": {{\"Collective name\": \"allreduce\", \
                 \"Process Group Name\": \"0\", \"Seq\": {number}, \"Process Group Ranks\": \"[0, 1]\", \
                 \"Group size\": 2}}}}"
            )
        });
        let events: Vec<String> = events.collect();
        format!(
            "{{\"baseTimeNanoseconds\": {base_ns}, \"distributedInfo\": {{\"rank\": {rank}, \
             \"world_size\": 2}}, \"traceEvents\": [{}]}}",
            events.join(", ")
        )
    }

    #[test]
    fn events_of_both_ranks_are_on_one_clock() {
        let folder = tempfile::tempdir().unwrap();
        let base = 1_700_000_000_000_000_000;
        let paths = [1_u32, 0].map(|rank| {
            let path = folder.path().join(format!("{rank}.json"));
            fs::write(&path, trace(rank, base + 700_000 * u64::from(rank))).unwrap();
            path
        });
        let results = paths.each_ref().map(|path| summarize_file(path).unwrap());
        let job = Ranks::merge(results.clone());
        let files: Vec<(&Path, &Ranks)> =
            paths.iter().map(PathBuf::as_path).zip(&results).collect();
        let traces = RankTrace::of_files(&files, &job);
        assert_eq!(
            traces
                .iter()
                .map(|trace| trace.alignment)
                .collect::<Vec<_>>(),
            [Alignment::Aligned(0), Alignment::Aligned(-700_000)]
        );
        let merged = merge_rank_traces(&traces).unwrap();
        let ends = |rank: u32| {
            let events = merged.events().iter();
            let events = events.filter(|event| merged.rank(event.thread) == Some(rank));
            events.map(|event| event.end().0).collect::<Vec<_>>()
        };
        assert_eq!(ends(0).len(), 5);
        assert_eq!(ends(0), ends(1));
    }

    #[test]
    fn a_repeated_rank_is_left_out_and_a_summary_has_no_events() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let first = write("a.json", trace(0, 1).as_bytes());
        let again = write("b.json", trace(0, 2).as_bytes());
        let results = [&first, &again].map(|path| summarize_file(path).unwrap());
        let job = Ranks::merge(results.clone());
        let files = [
            (first.as_path(), &results[0]),
            (again.as_path(), &results[1]),
        ];
        assert_eq!(RankTrace::of_files(&files, &job).len(), 1);
        let summary = write("0.ranks", &results[0].to_bytes());
        let files = [(summary.as_path(), &results[0])];
        let traces = RankTrace::of_files(&files, &results[0]);
        let error = merge_rank_traces(&traces).unwrap_err().to_string();
        assert!(
            error.ends_with("0.ranks: the trace has no events"),
            "{error}"
        );
    }
}
