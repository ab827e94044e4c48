//! Which collectives of different ranks are the same one.
//!
//! Two are the same if they have the same process group and the same sequence number. Traces
//! without sequence numbers are matched by the order within a step, if the ranks of the group agree
//! on the kinds and sizes of all collectives of that step. Nothing is matched by time, because the
//! clocks of ranks differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::codec::checksum;
use crate::collectives::{Collective, CollectiveKind};
use crate::rank_set::count_of;
use crate::summary::RankSummary;

/// The place of a collective in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// Its sequence number.
    Sequence(u64),
    /// The number of the step and the position in it.
    InStep(u64, u32),
}

/// One collective, with the ranks that took part.
#[derive(Clone, Debug)]
pub(crate) struct Match<'a> {
    /// The position of the group.
    pub(crate) group: usize,
    pub(crate) kind: CollectiveKind,
    pub(crate) bytes: u64,
    pub(crate) step: Option<u64>,
    pub(crate) sequence: Option<u64>,
    /// The position of each rank, and the collective as it saw it. Sorted by rank.
    pub(crate) members: Vec<(usize, &'a Collective)>,
}

/// A process group of the job.
#[derive(Clone, Debug)]
pub(crate) struct JobGroup {
    pub(crate) name: Arc<str>,
    pub(crate) ranks: Arc<str>,
    pub(crate) description: Arc<str>,
    /// The number of its ranks.
    pub(crate) size: u64,
}

/// The collectives of a job.
#[derive(Debug, Default)]
pub(crate) struct Matches<'a> {
    pub(crate) groups: Vec<JobGroup>,
    /// Collectives that at least two ranks took part in, sorted by group and place.
    pub(crate) list: Vec<Match<'a>>,
    /// The number of collectives, as ranks saw them, that are no part of a match.
    pub(crate) unmatched: u64,
    /// How many of them name no process group.
    pub(crate) without_group: u64,
    /// Whether any match relies on the order within a step.
    pub(crate) is_by_order: bool,
}

impl<'a> Matches<'a> {
    /// Matches the collectives of all ranks in time nearly linear in their number.
    pub(crate) fn build(summaries: &[&'a RankSummary]) -> Self {
        let mut building = Building::default();
        for (rank, summary) in summaries.iter().enumerate() {
            building.add_rank(rank, summary);
        }
        building.finish()
    }
}

/// A number for the look of a rank's collectives in a step, the rank, and the collectives in order.
type Ordered<'a> = (u64, usize, Vec<&'a Collective>);

#[derive(Debug, Default)]
struct Building<'a> {
    groups: Vec<JobGroup>,
    numbers: FxHashMap<(Arc<str>, Arc<str>), usize>,
    found: BTreeMap<(usize, Place), Vec<(usize, &'a Collective)>>,
    /// By group and step, the collectives of each rank in order, and what they look like.
    ordered: BTreeMap<(usize, u64), Vec<Ordered<'a>>>,
    unmatched: u64,
    without_group: u64,
}

impl<'a> Building<'a> {
    fn add_rank(&mut self, rank: usize, summary: &'a RankSummary) {
        let numbers: Vec<usize> = summary
            .groups
            .iter()
            .map(|group| self.number(group))
            .collect();
        let mut in_steps: BTreeMap<(usize, u64), Vec<&Collective>> = BTreeMap::new();
        for collective in &summary.collectives {
            if matches!(
                collective.kind,
                CollectiveKind::Send | CollectiveKind::Receive
            ) {
                continue;
            }
            let group = collective
                .group
                .and_then(|group| numbers.get(group as usize));
            // Groups of unknown ranks may have the same name and be others.
            let group = group.filter(|&&group| self.groups[group].size > 0);
            let Some(&group) = group else {
                self.without_group += 1;
                self.unmatched += 1;
                continue;
            };
            match (collective.sequence, collective.step) {
                (Some(sequence), _) => {
                    let members = self.found.entry((group, Place::Sequence(sequence)));
                    members.or_default().push((rank, collective));
                }
                (None, Some(step)) => in_steps.entry((group, step)).or_default().push(collective),
                (None, None) => self.unmatched += 1,
            }
        }
        for (key, collectives) in in_steps {
            let look = look_of(&collectives);
            self.ordered
                .entry(key)
                .or_default()
                .push((look, rank, collectives));
        }
    }

    fn number(&mut self, group: &crate::identity::Group) -> usize {
        let key = (group.name.clone(), group.ranks.clone());
        *self.numbers.entry(key).or_insert_with(|| {
            self.groups.push(JobGroup {
                name: group.name.clone(),
                ranks: group.ranks.clone(),
                description: group.description.clone(),
                size: count_of(&group.ranks),
            });
            self.groups.len() - 1
        })
    }

    fn finish(mut self) -> Matches<'a> {
        let is_by_order = !self.ordered.is_empty();
        for ((group, step), ranks) in std::mem::take(&mut self.ordered) {
            let usual = most_frequent(ranks.iter().map(|(look, ..)| *look));
            for (look, rank, collectives) in ranks {
                if Some(look) != usual {
                    self.unmatched += collectives.len() as u64;
                    continue;
                }
                for (position, collective) in (0..).zip(collectives) {
                    let members = self.found.entry((group, Place::InStep(step, position)));
                    members.or_default().push((rank, collective));
                }
            }
        }
        let mut list = Vec::with_capacity(self.found.len());
        for ((group, _), members) in self.found {
            let size = self.groups[group].size;
            match agreed(group, size, members) {
                Ok(found) => list.push(found),
                Err(members) => self.unmatched += members as u64,
            }
        }
        Matches {
            groups: self.groups,
            list,
            unmatched: self.unmatched,
            without_group: self.without_group,
            is_by_order,
        }
    }
}

/// Returns a match, or the number of its members if they are not the same collective: fewer than
/// two ranks, more than the group has, a rank twice, or different kinds or steps. A rank that knows
/// no step contradicts none.
fn agreed(group: usize, size: u64, members: Vec<(usize, &Collective)>) -> Result<Match<'_>, usize> {
    let (_, first) = members[0];
    let step = members.iter().find_map(|(_, member)| member.step);
    let is_same = |(_, other): &(usize, &Collective)| {
        other.kind == first.kind && (other.step.is_none() || other.step == step)
    };
    let is_twice = members.windows(2).any(|pair| pair[0].0 == pair[1].0);
    let is_crowd = members.len() as u64 > size;
    if members.len() < 2 || is_crowd || is_twice || !members.iter().all(is_same) {
        return Err(members.len());
    }
    Ok(Match {
        group,
        kind: first.kind,
        bytes: members
            .iter()
            .map(|(_, member)| member.bytes)
            .max()
            .unwrap_or(0),
        step,
        sequence: first.sequence,
        members,
    })
}

/// Returns a number that tells the kinds and sizes of a sequence of collectives.
fn look_of(collectives: &[&Collective]) -> u64 {
    let bytes = collectives.iter().flat_map(|collective| {
        let kind = [collective.kind as u8];
        kind.into_iter().chain(collective.bytes.to_le_bytes())
    });
    checksum(&bytes.collect::<Vec<u8>>())
}

/// Returns the value that occurs most often, the least of several.
pub(crate) fn most_frequent<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let best = counts.into_iter().rev().max_by_key(|&(_, count)| count);
    best.map(|(value, _)| value)
}
