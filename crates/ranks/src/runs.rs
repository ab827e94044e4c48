//! Which files of a folder are of the same run of a job, by the times at which they begin.
//!
//! ```text
//! rank 0    o              o
//! rank 1    o               o
//! rank 2     o             o          two runs: the later one is kept
//! ```

use std::collections::BTreeSet;

use mindprof_model::Nanos;

use crate::summary::RankSummary;

/// Files that begin farther apart are of different runs. The clocks of machines differ by less.
const OTHER_RUN_NS: u64 = 3_600_000_000_000;

/// Files of one run that repeat ranks are told apart by smaller and smaller distances: those of
/// several recordings of one process begin together on all ranks.
const RECORDINGS_NS: [u64; 4] = [600_000_000_000, 60_000_000_000, 5_000_000_000, 500_000_000];

/// Times before this one are not counted from 1970, so that they cannot be compared.
const LEAST_UNIX_NS: u64 = 946_684_800_000_000_000;

/// Returns the positions of the files of one run: the one with the most ranks, the latest of several.
/// If ranks have several files in it, the files that begin together are chosen. Files that tell no
/// time belong to every run.
pub(crate) fn of_one_run(summaries: &[RankSummary], places: &[usize]) -> BTreeSet<usize> {
    let mut timed: Vec<(u64, usize)> = Vec::new();
    let mut kept = BTreeSet::new();
    for &place in places {
        match begin_unix_ns(&summaries[place]) {
            Some(begin) => timed.push((begin, place)),
            None => {
                kept.insert(place);
            }
        }
    }
    timed.sort_unstable();
    let mut run = largest(summaries, &timed, OTHER_RUN_NS);
    for distance in RECORDINGS_NS {
        let ranks = count_ranks(summaries, run);
        if ranks == run.len() {
            break;
        }
        let part = largest(summaries, run, distance);
        if count_ranks(summaries, part) == ranks {
            run = part;
        }
    }
    kept.extend(run.iter().map(|&(_, place)| place));
    kept
}

/// Returns the files among sorted ones that are at most so far from their neighbours and have the most
/// ranks, the latest of several such runs.
fn largest<'a>(
    summaries: &[RankSummary],
    timed: &'a [(u64, usize)],
    distance: u64,
) -> &'a [(u64, usize)] {
    let runs = timed.chunk_by(|one, other| other.0 - one.0 <= distance);
    let run = runs.max_by_key(|run| count_ranks(summaries, run));
    run.unwrap_or_default()
}

/// Returns the number of ranks of some files. A file without a rank counts as one.
fn count_ranks(summaries: &[RankSummary], run: &[(u64, usize)]) -> usize {
    let ranks = run.iter().map(|&(_, place)| summaries[place].identity.rank);
    let (known, unknown): (Vec<_>, Vec<_>) = ranks.partition(Option::is_some);
    known.into_iter().collect::<BTreeSet<_>>().len() + unknown.len()
}

/// Returns when the work of a recording begins, in nanoseconds since the Unix epoch, or `None` if its
/// clock is another one.
fn begin_unix_ns(summary: &RankSummary) -> Option<u64> {
    let steps = summary.steps.iter().map(|step| step.start);
    let collectives = summary.collectives.first().map(|first| first.start);
    let begin = steps.chain(collectives).min().unwrap_or(Nanos::ZERO);
    let begin = summary.reference_unix_ns.saturating_add(begin.0);
    (begin >= LEAST_UNIX_NS).then_some(begin)
}
