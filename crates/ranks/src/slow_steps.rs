//! Steps that took longer than usual on all ranks, and the rank to blame.

use mindprof_answers::micros;
use mindprof_model::Nanos;
use serde::Serialize;

use crate::excess::{difference, differences, named_cause};
use crate::label::RankLabel;
use crate::median::{deviation, median};
use crate::own_times::{ByCause, Cause, OwnTimes, StepTimesOfRanks, sum_of};
use crate::summary::RankSummary;

/// The number of steps from which on some of them can be told to be slow.
const ENOUGH_STEPS: usize = 5;

/// A step is slow if it exceeds the median by this share of it, and by this many median deviations.
const SLOW_PERCENT: u64 = 25;
const DEVIATIONS: u64 = 5;

/// A rank is to blame if its own growth covers this share of the step's.
const BLAMED_PERCENT: u64 = 50;

/// Ranks that grew by this share of the largest growth are to blame together: mending one of them
/// would leave the others to wait for.
const ALIKE_PERCENT: u128 = 90;

/// The culprit of a slow step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// One rank, which the others waited for.
    Rank(RankLabel),
    /// Several ranks that grew by about as much, in the order of the ranks.
    Ranks(Vec<RankLabel>),
    /// Most ranks, alike.
    AllRanks,
    /// Nobody that the recordings show. The time went into communication.
    Nobody,
}

/// A step that took longer than usual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowJobStep {
    /// The number of the step.
    pub number: u64,
    /// Its median duration over all ranks.
    #[serde(rename = "duration_us", serialize_with = "micros")]
    pub duration: Nanos,
    /// The time by which it exceeds the median step.
    #[serde(rename = "excess_us", serialize_with = "micros")]
    pub excess: Nanos,
    /// The culprit.
    pub blame: Blame,
    /// The cause that covers most of the growth of that rank or of the median rank.
    pub cause: Option<Cause>,
}

/// Finds slow steps in time linear in the number of steps of all ranks. The slowest come first.
pub(crate) fn slow_steps(summaries: &[&RankSummary], times: &OwnTimes) -> Vec<SlowJobStep> {
    if times.steps.len() < ENOUGH_STEPS {
        return Vec::new();
    }
    let durations: Vec<i64> = times
        .steps
        .iter()
        .map(|step| difference(step.duration.0, 0))
        .collect();
    let usual = difference(times.step.0, 0);
    let least = DEVIATIONS.saturating_mul(deviation(&durations, usual));
    let least = least.max(times.step.0.saturating_mul(SLOW_PERCENT) / 100);
    let usual_times = UsualTimes::build(summaries.len(), times);
    let slow = times.steps.iter().filter_map(|step| {
        let excess = step.duration.saturating_sub(times.step);
        (excess.0 > least).then(|| {
            let (blame, cause) = blame(summaries, step, excess, &usual_times);
            SlowJobStep {
                number: step.number,
                duration: step.duration,
                excess,
                blame,
                cause,
            }
        })
    });
    let mut slow: Vec<SlowJobStep> = slow.collect();
    slow.sort_by_key(|step| (std::cmp::Reverse(step.excess), step.number));
    slow
}

fn blame(
    summaries: &[&RankSummary],
    step: &StepTimesOfRanks,
    excess: Nanos,
    usual: &UsualTimes,
) -> (Blame, Option<Cause>) {
    let growth = |rank: usize, by_cause: &ByCause| difference(sum_of(by_cause), usual.own[rank]);
    let mut growths: Vec<i64> = step
        .ranks
        .iter()
        .map(|(rank, _, own)| growth(*rank, own))
        .collect();
    let covers = |growth: i64| {
        let covered = u128::from(growth.unsigned_abs()) * 100;
        growth > 0 && covered >= u128::from(excess.0) * u128::from(BLAMED_PERCENT)
    };
    let middle = median(&mut growths).unwrap_or(0);
    if covers(middle) {
        let grown: [i64; Cause::ALL.len()] = std::array::from_fn(|cause| {
            let of_ranks = step.ranks.iter();
            let mut values: Vec<i64> = of_ranks
                .map(|(rank, _, own)| difference(own[cause], usual.by_cause[*rank][cause]))
                .collect();
            median(&mut values).unwrap_or(0)
        });
        return (Blame::AllRanks, named_cause(grown, middle.unsigned_abs()));
    }
    let largest = step.ranks.iter().map(|(rank, _, own)| growth(*rank, own));
    let largest = largest.max().filter(|&largest| covers(largest));
    let Some(largest) = largest else {
        return (Blame::Nobody, None);
    };
    let is_alike = |grown: i64| {
        let grown = u128::from(grown.max(0).unsigned_abs());
        grown * 100 >= u128::from(largest.unsigned_abs()) * ALIKE_PERCENT
    };
    let (mut labels, mut causes) = (Vec::new(), Vec::new());
    for (rank, _, own) in &step.ranks {
        let grown = growth(*rank, own);
        if is_alike(grown) {
            labels.push(RankLabel::of(summaries[*rank]));
            let by_cause = differences(own, &usual.by_cause[*rank]);
            causes.push(named_cause(by_cause, grown.unsigned_abs()));
        }
    }
    let first = causes.first().copied().flatten();
    let cause = first.filter(|_| causes.iter().all(|&cause| cause == first));
    let blame = match labels.len() {
        1 => Blame::Rank(labels.remove(0)),
        _ => Blame::Ranks(labels),
    };
    (blame, cause)
}

/// The median own time of each rank over all steps, in all and by cause.
struct UsualTimes {
    own: Vec<u64>,
    by_cause: Vec<ByCause>,
}

impl UsualTimes {
    fn build(ranks: usize, times: &OwnTimes) -> Self {
        let mut of_ranks: Vec<Vec<&ByCause>> = vec![Vec::new(); ranks];
        for (rank, _, own) in times.steps.iter().flat_map(|step| &step.ranks) {
            of_ranks[*rank].push(own);
        }
        let middle = |list: &[&ByCause], of: &dyn Fn(&ByCause) -> u64| {
            let mut values: Vec<u64> = list.iter().map(|own| of(own)).collect();
            median(&mut values).unwrap_or(0)
        };
        let all = of_ranks.iter();
        Self {
            own: all.map(|list| middle(list, &|own| sum_of(own))).collect(),
            by_cause: of_ranks
                .iter()
                .map(|list| std::array::from_fn(|cause| middle(list, &|own| own[cause])))
                .collect(),
        }
    }
}
