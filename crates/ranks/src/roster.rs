//! Which ranks there are: missing ones, ranks that two files claim, and files of other jobs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::identity::RankSource;
use crate::label::RankLabel;
use crate::matched::most_frequent;
use crate::rank_set::{MOST_RANKS, text_of};
use crate::runs::of_one_run;
use crate::summary::{Fault, RankSummary};

/// The ranks of a job that are there, and what is wrong with the set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Roster {
    /// The number of summaries.
    pub files: usize,
    /// The numbers of the ranks, as in `0-7`.
    pub ranks: String,
    /// The number of ranks of the job, as most files state it.
    pub world_size: Option<u32>,
    /// The number of machines that files name.
    pub hosts: usize,
    /// The missing ranks, as in `3,5-7`. Empty if none is missing or the number is unknown.
    pub missing: String,
    /// The number of missing ranks.
    pub missing_count: usize,
    /// The files that repeat a rank. Answers leave them out.
    pub repeated: Vec<RankLabel>,
    /// The files that no rank is known of.
    pub unnumbered: Vec<RankLabel>,
    /// The files that are of another job or run: their number of ranks differs or excludes their rank,
    /// or they begin more than an hour apart from the others. Answers leave them out.
    pub foreign: Vec<RankLabel>,
    /// The number of ranks that are known from the name of a file only.
    pub named_by_file: usize,
    /// The ranks whose recordings lost events or whose files were damaged.
    pub incomplete: Vec<RankLabel>,
    /// The ranks that recorded other operators than most, each with the operators that it recorded,
    /// as in `share=0.1`; empty for all of them.
    pub limits: Vec<(RankLabel, String)>,
}

impl Roster {
    /// Looks over the summaries, and returns the positions of those that answers rest on.
    pub(crate) fn build(summaries: &[RankSummary]) -> (Self, Vec<usize>) {
        let world_size = world_size(summaries);
        let mut roster = Self {
            files: summaries.len(),
            world_size,
            ..Self::default()
        };
        let mut same_job = Vec::with_capacity(summaries.len());
        for (position, summary) in summaries.iter().enumerate() {
            let identity = &summary.identity;
            let is_of_job = world_size.is_none_or(|size| {
                let is_stated = identity.world_size.is_none_or(|stated| stated == size);
                is_stated && identity.rank.is_none_or(|rank| rank < size)
            });
            if is_of_job {
                same_job.push(position);
            } else {
                roster.foreign.push(RankLabel::of(summary));
            }
        }
        let same_run = of_one_run(summaries, &same_job);
        let chosen = chosen(summaries, &same_run);
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        let mut kept = Vec::with_capacity(summaries.len());
        for position in same_job {
            let summary = &summaries[position];
            let identity = &summary.identity;
            let label = || RankLabel::of(summary);
            let of_rank = identity.rank.and_then(|rank| chosen.get(&rank).copied());
            if of_rank.is_some_and(|chosen| chosen != position) {
                roster.repeated.push(label());
                continue;
            }
            if !same_run.contains(&position) {
                roster.foreign.push(label());
                continue;
            }
            match identity.rank {
                Some(rank) => {
                    seen.insert(rank);
                }
                None => roster.unnumbered.push(label()),
            }
            roster.named_by_file += usize::from(identity.source == RankSource::FileName);
            if is_incomplete(summary) {
                roster.incomplete.push(label());
            }
            kept.push(position);
        }
        roster.foreign.sort();
        roster.limits = other_limits(summaries, &kept);
        roster.count(summaries, &kept, &seen);
        (roster, kept)
    }

    fn count(&mut self, summaries: &[RankSummary], kept: &[usize], seen: &BTreeSet<u32>) {
        let numbers: Vec<u64> = seen.iter().map(|&rank| u64::from(rank)).collect();
        self.ranks = text_of(&numbers);
        let hosts = kept
            .iter()
            .filter_map(|&place| summaries[place].identity.host.as_deref());
        let hosts: BTreeSet<&str> = hosts.collect();
        self.hosts = hosts.len();
        let size = self.world_size.filter(|_| !seen.is_empty()).unwrap_or(0);
        self.missing_count = (size as usize).saturating_sub(seen.len());
        self.missing = if u64::from(size) <= MOST_RANKS {
            let missing = (0..size).filter(|rank| !seen.contains(rank)).map(u64::from);
            text_of(&missing.collect::<Vec<u64>>())
        } else {
            gaps(seen, size)
        };
    }
}

/// Returns the ranks that are missing as a text of ranges, in time linear in the number of others. A
/// file that states an absurd number of ranks must not cost as much.
fn gaps(seen: &BTreeSet<u32>, size: u32) -> String {
    let mut parts = Vec::new();
    let mut next = 0;
    for &rank in seen.iter().chain([&size]) {
        match rank.saturating_sub(next) {
            0 => {}
            1 => parts.push(next.to_string()),
            2.. => parts.push(format!("{next}-{}", rank - 1)),
        }
        next = rank.saturating_add(1);
    }
    parts.join(",")
}

/// Returns the number of ranks that most files state, unless more files contradict it: those that
/// state none and are of a rank beyond it.
fn world_size(summaries: &[RankSummary]) -> Option<u32> {
    let identities = || summaries.iter().map(|summary| &summary.identity);
    let size = most_frequent(identities().filter_map(|identity| identity.world_size))?;
    let stating = identities().filter(|identity| identity.world_size == Some(size));
    let beyond = identities().filter(|identity| {
        identity.world_size.is_none() && identity.rank.is_some_and(|rank| rank >= size)
    });
    (stating.count() >= beyond.count()).then_some(size)
}

/// Returns the file of each rank among those of one run: a complete one before a damaged one, the one
/// with the most events of several.
fn chosen(summaries: &[RankSummary], run: &BTreeSet<usize>) -> BTreeMap<u32, usize> {
    let mut chosen: BTreeMap<u32, usize> = BTreeMap::new();
    let worth = |place: usize| (!is_incomplete(&summaries[place]), summaries[place].events);
    for &place in run {
        if let Some(rank) = summaries[place].identity.rank {
            let best = chosen.entry(rank).or_insert(place);
            if worth(place) > worth(*best) {
                *best = place;
            }
        }
    }
    chosen
}

/// Returns the ranks that recorded other operators than most, each with what it recorded.
fn other_limits(summaries: &[RankSummary], kept: &[usize]) -> Vec<(RankLabel, String)> {
    let kept: Vec<&RankSummary> = kept.iter().map(|&place| &summaries[place]).collect();
    let usual = usual_limit(&kept);
    let others = kept.into_iter().filter(|summary| summary.limit() != usual);
    let others = others.map(|summary| {
        let limit = summary.limit().unwrap_or_default().to_owned();
        (RankLabel::of(summary), limit)
    });
    others.collect()
}

/// Returns the choice of operators that most ranks recorded; `None` is all of them.
pub(crate) fn usual_limit<'a>(summaries: &[&'a RankSummary]) -> Option<&'a str> {
    most_frequent(summaries.iter().map(|summary| summary.limit())).flatten()
}

fn is_incomplete(summary: &RankSummary) -> bool {
    summary.faults.iter().any(|fault| match fault {
        Fault::Lost(..) | Fault::Cut(_) => true,
        Fault::Repaired(name, _) => {
            matches!(&**name, "truncated" | "damaged_compression" | "malformed")
        }
    })
}
