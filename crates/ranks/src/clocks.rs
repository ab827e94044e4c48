//! One clock for all ranks: how far the clock of each rank is from that of the first.
//!
//! A synchronizing collective ends on all ranks at nearly the same time. The median difference of
//! the ends, over all collectives that two ranks share, is the offset between their clocks. Ranks
//! without a common group are connected through the groups of others. Ranks of one machine read the
//! same clock, so if their collectives end far apart, no offset is made up from the ends.

use std::collections::VecDeque;

use mindprof_model::Nanos;

use crate::collectives::Collective;
use crate::matched::{Match, Matches};
use crate::median::{deviation, median};
use crate::summary::RankSummary;

/// The fewest collectives that an offset rests on.
const FEWEST: usize = 3;

/// From fewer collectives, the median deviation is chance, and the largest deviation counts.
const ENOUGH: usize = 6;

/// The part of the error that no number of collectives tells: the ends of a rank may come later each
/// time, as at the end of a ring, and the clocks of devices are read with an error of their own.
const ALIKE: Nanos = Nanos(4_000);

/// The true offset is between two of the sorted differences, each so many roots of their number, in
/// thousandths, away from the median, in 999 of 1,000 cases: half of the normal quantile 3.29.
const ROOTS_IN_THOUSANDTHS: usize = 1_645;

/// The offset that rests on three, four and so on to nine differences is wrong by more than this many
/// tenths of the largest deviation in one of 1,000 cases. The numbers were simulated for uniform,
/// normal and exponential noise.
const FEW_TENTHS: [u64; 7] = [142, 46, 26, 18, 14, 12, 11];

/// The ends of one collective are less than this apart, or less than this part of a step.
const TRUSTED_ERROR: Nanos = Nanos(1_000_000);
const TRUSTED_PART: u64 = 20;

/// Recordings of one machine read its clock with at most this error. Ends that are farther apart tell
/// less about the clocks of its ranks than the machine does.
const MACHINE_ERROR: Nanos = Nanos(1_000_000);

/// The name of a machine that many machines have.
const ANY_MACHINE: &str = "localhost";

/// A clock that jumped disagrees in some of the collectives. Trusted ones agree in this share of them.
const TRUSTED_PERCENT: usize = 90;

/// The most ranks that are tried as the reference.
const REFERENCES: usize = 8;

/// The clock of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// The time to add to the rank's clock, in nanoseconds.
    pub(crate) offset_ns: i64,
    /// The true offset is almost certainly within this time of the offset.
    pub(crate) error: Nanos,
    /// Half of the collectives agree with the offset within this time, or all of very few.
    pub(crate) apart: Nanos,
    /// Nine of ten collectives agree with the offset within this time.
    pub(crate) spread: Nanos,
    /// The number of collectives that the offset rests on.
    pub(crate) collectives: u64,
    /// Whether it is the clock of the reference's machine, because collectives end too far apart to
    /// tell more.
    pub(crate) is_of_machine: bool,
}

impl Clock {
    /// Returns the clock that agrees with the reference, with a stated error.
    const fn same(error: Nanos) -> Self {
        Self {
            offset_ns: 0,
            error,
            apart: error,
            spread: error,
            collectives: 0,
            is_of_machine: false,
        }
    }
}

/// The clocks of all ranks, by position. `None` if a rank shares too few collectives with others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    pub(crate) ranks: Vec<Option<Clock>>,
}

impl Clocks {
    /// Aligns the clocks in time linear in the number of collectives, and returns the ranks whose
    /// clock cannot be trusted. The reference is the first rank with which most others agree.
    pub(crate) fn align(
        summaries: &[&RankSummary],
        matches: &Matches<'_>,
        step: Nanos,
    ) -> (Self, Vec<usize>) {
        let groups = Groups::build(summaries, matches);
        let sharing = (0..summaries.len()).filter(|&rank| !groups.of_rank[rank].is_empty());
        let mut best: Option<(usize, (Self, Vec<usize>))> = None;
        for reference in sharing.take(REFERENCES) {
            let (clocks, doubtful) = Self::aligned_with(summaries, &groups, reference)
                .trusted(summaries, reference, step);
            let agreeing = clocks.ranks.iter().flatten().count();
            // Ranks that are in no component with the reference neither agree nor disagree.
            let is_most = agreeing > doubtful.len();
            if best.as_ref().is_none_or(|(most, _)| agreeing > *most) {
                best = Some((agreeing, (clocks, doubtful)));
            }
            if is_most {
                break;
            }
        }
        let none = || {
            (
                Self {
                    ranks: vec![None; summaries.len()],
                },
                Vec::new(),
            )
        };
        best.map_or_else(none, |(_, found)| found)
    }

    /// Aligns the clocks with that of one rank. Ranks that are in no component with it stay without
    /// a clock.
    fn aligned_with(summaries: &[&RankSummary], groups: &Groups<'_, '_>, reference: usize) -> Self {
        let mut clocks = Self {
            ranks: vec![None; summaries.len()],
        };
        clocks.ranks[reference] = Some(Clock::same(Nanos::ZERO));
        let mut is_done = vec![false; groups.matches.len()];
        let mut queue = VecDeque::from([reference]);
        while let Some(rank) = queue.pop_front() {
            for &group in &groups.of_rank[rank] {
                if std::mem::replace(&mut is_done[group], true) {
                    continue;
                }
                queue.extend(clocks.align_group(summaries, rank, &groups.matches[group]));
            }
        }
        clocks
    }

    /// Aligns the ranks of a group with one whose clock is known, and returns those that are new.
    ///
    /// ```text
    /// rank 0        |-----------|             its clock is known
    /// rank 1             |------|       |     the same collective: the offset is the
    ///                           '-------'     difference of the ends
    /// ```
    fn align_group(
        &mut self,
        summaries: &[&RankSummary],
        known: usize,
        matches: &[&Match<'_>],
    ) -> Vec<usize> {
        let Some(from) = self.ranks[known] else {
            return Vec::new();
        };
        let mut differences: Vec<(usize, i64)> = Vec::new();
        for found in matches {
            let of_known = found
                .members
                .binary_search_by_key(&known, |member| member.0);
            let Ok(place) = of_known else { continue };
            let end = unix_end(summaries, found.members[place]);
            let unknown = found
                .members
                .iter()
                .filter(|member| self.ranks[member.0].is_none());
            differences.extend(unknown.map(|&member| {
                let difference = i128::from(end) - i128::from(unix_end(summaries, member));
                (member.0, i64::try_from(difference).unwrap_or(i64::MAX))
            }));
        }
        differences.sort_unstable();
        let mut new = Vec::new();
        for of_rank in differences.chunk_by(|one, other| one.0 == other.0) {
            let mut list: Vec<i64> = of_rank.iter().map(|&(_, difference)| difference).collect();
            let offset = median(&mut list).filter(|_| list.len() >= FEWEST);
            let Some(offset) = offset else { continue };
            let rank = of_rank[0].0;
            self.ranks[rank] = Some(Clock {
                offset_ns: from.offset_ns.saturating_add(offset),
                error: from.error.saturating_add(error(&mut list, offset)),
                apart: from.apart.saturating_add(apart(&list, offset)),
                spread: from.spread.saturating_add(spread(&list, offset)),
                collectives: list.len() as u64,
                is_of_machine: false,
            });
            new.push(rank);
        }
        new
    }

    /// Takes back the clocks whose collectives end so far apart that they cannot be the same ones, or
    /// that jumped. Returns the ranks that had them too.
    ///
    /// Ranks on the machine of the reference keep its clock if the ends are less than a step apart,
    /// which is what a busy machine does to ranks that wait for a processor:
    ///
    /// ```text
    /// rank 0   |--------------|              the same collectives on the same clock: rank 1 gets
    /// rank 1   |--------------|.....|        a processor later, now and then
    /// ```
    fn trusted(
        mut self,
        summaries: &[&RankSummary],
        reference: usize,
        step: Nanos,
    ) -> (Self, Vec<usize>) {
        let machine = machine_of(summaries[reference]);
        let mut doubtful = Vec::new();
        for (rank, clock) in self.ranks.iter_mut().enumerate() {
            let Some(found) = *clock else { continue };
            let apart = found.apart.max(found.spread);
            let is_same = machine.is_some() && machine_of(summaries[rank]) == machine;
            let distance = apart.saturating_add(Nanos(found.offset_ns.unsigned_abs()));
            if apart > MACHINE_ERROR && is_same && distance < step {
                *clock = Some(Clock {
                    is_of_machine: true,
                    ..Clock::same(MACHINE_ERROR)
                });
            } else if apart > largest_apart(step) {
                *clock = None;
                doubtful.push(rank);
            }
        }
        (self, doubtful)
    }

    /// Returns whether collectives end so far apart that some ranks keep the clock of their machine.
    pub(crate) fn have_ends_apart(&self) -> bool {
        self.ranks.iter().flatten().any(|clock| clock.is_of_machine)
    }

    /// Returns a moment of a rank on the common clock, in nanoseconds since the Unix epoch, or `None`
    /// if the rank has no clock.
    pub(crate) fn at(
        &self,
        summaries: &[&RankSummary],
        rank: usize,
        moment: Nanos,
    ) -> Option<i128> {
        let clock = self.ranks[rank]?;
        let unix = i128::from(summaries[rank].reference_unix_ns) + i128::from(moment.0);
        Some(unix + i128::from(clock.offset_ns))
    }
}

/// Returns how far apart collectives of one clock may end at most.
fn largest_apart(step: Nanos) -> Nanos {
    Nanos(step.0 / TRUSTED_PART).max(TRUSTED_ERROR)
}

/// Returns the name of the machine that a rank ran on, if it names one.
fn machine_of(summary: &RankSummary) -> Option<&str> {
    let host = summary.identity.host.as_deref();
    host.filter(|host| !host.is_empty() && !host.starts_with(ANY_MACHINE))
}

/// Returns how far an offset, which is the median of some differences, may be from the true one.
///
/// Chance moves the median. The true offset is the middle of what all differences would be, of which
/// these are a sample, so it lies between two of them that depend on their number alone.
///
/// ```text
/// differences      .    .  . : .:|:. :  .   .      .
///                          '-----|-----'
///                              median
/// ```
fn error(differences: &mut [i64], offset: i64) -> Nanos {
    let count = differences.len();
    let few = count.checked_sub(FEWEST);
    let by_chance = if let Some(tenths) = few.and_then(|few| FEW_TENTHS.get(few)) {
        (largest(differences, offset) / 10).saturating_mul(*tenths)
    } else {
        let roots = (count * ROOTS_IN_THOUSANDTHS * ROOTS_IN_THOUSANDTHS).isqrt() / 1_000;
        let below = (count / 2).saturating_sub(roots);
        let mut distance = |place: usize| {
            let (_, found, _) = differences.select_nth_unstable(place);
            found.abs_diff(offset)
        };
        distance(below).max(distance(count - 1 - below))
    };
    let by_chance = Nanos(by_chance).max(apart(differences, offset));
    by_chance.saturating_add(ALIKE)
}

/// Returns the median deviation of the differences from an offset, or of few the largest.
fn apart(differences: &[i64], offset: i64) -> Nanos {
    if differences.len() >= ENOUGH {
        return Nanos(deviation(differences, offset));
    }
    Nanos(largest(differences, offset))
}

fn largest(differences: &[i64], offset: i64) -> u64 {
    let deviations = differences.iter().map(|other| other.abs_diff(offset));
    deviations.max().unwrap_or(0)
}

/// Returns the distance from a center that nine of ten values do not exceed.
fn spread(values: &[i64], center: i64) -> Nanos {
    let mut distances: Vec<u64> = values.iter().map(|value| value.abs_diff(center)).collect();
    let Some(last) = distances.len().checked_sub(1) else {
        return Nanos::ZERO;
    };
    let place = last * TRUSTED_PERCENT / 100;
    Nanos(*distances.select_nth_unstable(place).1)
}

fn unix_end(summaries: &[&RankSummary], (rank, collective): (usize, &Collective)) -> u64 {
    let reference = summaries[rank].reference_unix_ns;
    reference.saturating_add(collective.end.0)
}

/// The synchronizing collectives of each group, and the groups of each rank.
struct Groups<'a, 'b> {
    matches: Vec<Vec<&'b Match<'a>>>,
    of_rank: Vec<Vec<usize>>,
}

impl<'a, 'b> Groups<'a, 'b> {
    fn build(summaries: &[&RankSummary], matches: &'b Matches<'a>) -> Self {
        let mut by_group: Vec<Vec<&Match<'_>>> = vec![Vec::new(); matches.groups.len()];
        let mut of_rank: Vec<Vec<usize>> = vec![Vec::new(); summaries.len()];
        for found in &matches.list {
            if !found.kind.is_synchronizing() {
                continue;
            }
            by_group[found.group].push(found);
            for &(rank, _) in &found.members {
                // Matches are sorted by group, so a rank meets each group in one run.
                if of_rank[rank].last() != Some(&found.group) {
                    of_rank[rank].push(found.group);
                }
            }
        }
        // A large group connects more ranks with one error.
        let sizes: Vec<usize> = by_group
            .iter()
            .map(|list| {
                list.iter()
                    .map(|found| found.members.len())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for groups in &mut of_rank {
            groups.sort_by_key(|&group| (std::cmp::Reverse(sizes[group]), group));
        }
        Self {
            matches: by_group,
            of_rank,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_differences_are_as_far_apart_as_the_farthest() {
        assert_eq!(apart(&[-900, -10, 10, 20], 0), Nanos(900));
        assert_eq!(apart(&[-900, -10, -10, 10, 10, 20], 0), Nanos(10));
    }

    #[test]
    fn equal_differences_leave_the_error_that_no_number_of_them_tells() {
        for count in [3, 9, 10, 1_000] {
            assert_eq!(error(&mut vec![500; count], 500), ALIKE);
        }
    }

    type Noise = fn(f64) -> f64;

    /// Noise that is equally often early and late, from a number that is evenly spread below one.
    fn noises() -> [(&'static str, Noise); 4] {
        [
            ("uniform", |part| part - 0.5),
            ("exponential", |part| {
                let side = if part < 0.5 { -1.0 } else { 1.0 };
                -side * (1.0 - (2.0 * part - 1.0).abs()).max(1e-12).ln()
            }),
            ("with outliers", |part| {
                (std::f64::consts::PI * (part - 0.5)).tan()
            }),
            ("triangular", |part| {
                let side = if part < 0.5 { -1.0 } else { 1.0 };
                side * (1.0 - (1.0 - (2.0 * part - 1.0).abs()).sqrt())
            }),
        ]
    }

    #[test]
    fn the_true_offset_is_within_the_error() {
        const JOBS: u32 = 3_000;
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        for count in [3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 20, 50, 200] {
            for (name, noise) in noises() {
                let mut wrong = 0;
                for _ in 0..JOBS {
                    let differences = (0..count).map(|_| (100_000.0 * noise(next())) as i64);
                    let mut differences: Vec<i64> = differences.collect();
                    let offset = median(&mut differences).unwrap();
                    // Beside chance, every end of the rank comes late by what no trace tells.
                    let stated = error(&mut differences, offset).0;
                    wrong += u32::from(offset.unsigned_abs() + ALIKE.0 > stated);
                }
                assert!(wrong <= JOBS / 200, "{count} {name}: {wrong} of {JOBS}");
            }
        }
    }
}
