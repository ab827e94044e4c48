//! Which ranks there are: missing ones, ranks that two files claim, and files of other jobs.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::identity::RankSource;
use crate::label::RankLabel;
use crate::matched::most_frequent;
use crate::rank_set::text_of;
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
    /// The files that are of another job: their number of ranks differs, or excludes their rank.
    /// Answers leave them out.
    pub foreign: Vec<RankLabel>,
    /// The number of ranks that are known from the name of a file only.
    pub named_by_file: usize,
    /// The ranks whose recordings lost events or whose files were damaged.
    pub incomplete: Vec<RankLabel>,
}

impl Roster {
    /// Looks over the summaries, and returns the positions of those that answers rest on.
    pub(crate) fn build(summaries: &[RankSummary]) -> (Self, Vec<usize>) {
        let identities = || summaries.iter().map(|summary| &summary.identity);
        let world_size = most_frequent(identities().filter_map(|identity| identity.world_size));
        let mut roster = Self {
            files: summaries.len(),
            world_size,
            ..Self::default()
        };
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        let mut kept = Vec::with_capacity(summaries.len());
        for (position, summary) in summaries.iter().enumerate() {
            let identity = &summary.identity;
            let label = || RankLabel::of(summary);
            let differs = identity.world_size.is_some() && identity.world_size != world_size;
            let is_beyond = |rank: u32| world_size.is_some_and(|size| rank >= size);
            if differs || identity.rank.is_some_and(is_beyond) {
                roster.foreign.push(label());
                continue;
            }
            match identity.rank {
                Some(rank) if !seen.insert(rank) => {
                    roster.repeated.push(label());
                    continue;
                }
                Some(_) => {}
                None => roster.unnumbered.push(label()),
            }
            roster.named_by_file += usize::from(identity.source == RankSource::FileName);
            if is_incomplete(summary) {
                roster.incomplete.push(label());
            }
            kept.push(position);
        }
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
        // A file that states an absurd number of ranks must not cost as much.
        let size = size.min(seen.len().saturating_mul(1_000) as u32 + 1_000_000);
        let missing = (0..size).filter(|rank| !seen.contains(rank)).map(u64::from);
        let missing: Vec<u64> = missing.collect();
        self.missing_count = missing.len();
        self.missing = text_of(&missing);
    }
}

fn is_incomplete(summary: &RankSummary) -> bool {
    summary.faults.iter().any(|fault| match fault {
        Fault::Lost(..) | Fault::Cut(_) => true,
        Fault::Repaired(name, _) => {
            matches!(&**name, "truncated" | "damaged_compression" | "malformed")
        }
    })
}
