//! By how much the times of each rank exceed those of the median rank, and when that is more than chance.

use mindprof_model::Nanos;

use crate::label::RankLabel;
use crate::median::{deviation, median};
use crate::own_times::{ByCause, Cause, OwnTimes};
use crate::stragglers::Straggler;

/// A rank is slow if its own time exceeds the median rank's by this share of a step, in most steps.
const SLOW_PERCENT: u64 = 5;

/// A rank is slow in a step only if it exceeds the median rank's by at least half of that. If there are
/// few steps, it is slow in all of them.
const MOST_STEPS_PERCENT: usize = 75;
const FEW_STEPS: usize = 8;

/// Ranks are compared only in so many steps: a few differ by chance.
const ENOUGH_STEPS: usize = 5;

/// The median excess over all steps exceeds its own uncertainty, which is the median deviation
/// between steps divided by the root of their number, by this factor.
const SIGNIFICANT: u128 = 8;

/// If there are enough ranks to tell how much they vary, a slow rank exceeds the median by this many
/// median deviations.
const DEVIATIONS: u64 = 5;
const ENOUGH_RANKS: usize = 5;

/// A cause is named only if it covers this share of the difference.
const NAMED_PERCENT: u64 = 80;

/// The limits that a rank exceeds if it is slow.
#[derive(Debug)]
pub(crate) struct Limit {
    /// The least excess.
    pub(crate) least: u64,
    /// The median excess of all ranks, and the least distance from it.
    center: i64,
    apart: Option<u64>,
}

impl Limit {
    pub(crate) fn of(excesses: &[Option<Excess>], times: &OwnTimes) -> Self {
        let middles = excesses.iter().flatten().map(|excess| excess.middle);
        let mut middles: Vec<i64> = middles.collect();
        let center = median(&mut middles).unwrap_or(0);
        let is_known = middles.len() >= ENOUGH_RANKS;
        Self {
            least: times
                .step
                .0
                .saturating_mul(SLOW_PERCENT)
                .div_ceil(100)
                .max(1),
            center,
            apart: is_known.then(|| deviation(&middles, center).saturating_mul(DEVIATIONS)),
        }
    }

    /// Returns whether a rank takes longer by as much as a slow one, but in too few steps, or by no more
    /// than what differences between steps explain.
    pub(crate) fn may_be_exceeded(&self, excess: &Excess) -> bool {
        excess.middle > 0 && excess.middle.unsigned_abs() >= self.least && !self.is_usual(excess)
    }

    pub(crate) fn is_exceeded(&self, excess: &Excess) -> bool {
        let distance = excess.middle.abs_diff(self.center);
        excess.middle > 0
            && excess.middle.unsigned_abs() >= self.least
            && self.apart.is_none_or(|apart| distance > apart)
            && self.is_usual(excess)
    }

    /// Returns whether a rank takes longer in most steps, by more than chance.
    fn is_usual(&self, excess: &Excess) -> bool {
        let steps = excess.per_step.len();
        let most = if steps < FEW_STEPS {
            100
        } else {
            MOST_STEPS_PERCENT
        };
        excess.slow_steps(self.least) * 100 >= steps * most && excess.is_significant()
    }
}

/// By how much one rank exceeds the median rank.
#[derive(Debug, Default)]
pub(crate) struct Excess {
    per_step: Vec<i64>,
    by_cause: [Vec<i64>; Cause::ALL.len()],
    pub(crate) middle: i64,
}

impl Excess {
    /// Returns the excess of each rank by some kind of time, or `None` if it has too few steps.
    pub(crate) fn of_ranks(
        ranks: usize,
        times: &OwnTimes,
        of: fn(&ByCause) -> u64,
    ) -> Vec<Option<Self>> {
        let mut excesses: Vec<Option<Self>> = (0..ranks).map(|_| None).collect();
        for step in &times.steps {
            let mut all: Vec<u64> = step.ranks.iter().map(|(.., own)| of(own)).collect();
            let middle = median(&mut all).unwrap_or(0);
            for (rank, _, by_cause) in &step.ranks {
                let excess = excesses[*rank].get_or_insert_default();
                excess.per_step.push(difference(of(by_cause), middle));
                for (cause, list) in excess.by_cause.iter_mut().enumerate() {
                    list.push(difference(by_cause[cause], step.by_cause[cause]));
                }
            }
        }
        for excess in &mut excesses {
            excess.take_if(|excess| excess.per_step.len() < ENOUGH_STEPS);
        }
        for excess in excesses.iter_mut().flatten() {
            excess.middle = median(&mut excess.per_step.clone()).unwrap_or(0);
        }
        excesses
    }

    fn slow_steps(&self, least: u64) -> usize {
        let is_slow = |excess: &&i64| **excess > 0 && excess.unsigned_abs() >= least.div_ceil(2);
        self.per_step.iter().filter(is_slow).count()
    }

    /// Returns whether the excess is more than the differences between steps explain.
    fn is_significant(&self) -> bool {
        let square = |value: u64| u128::from(value).saturating_mul(u128::from(value));
        let between_steps = square(deviation(&self.per_step, self.middle));
        let steps = self.per_step.len() as u128;
        square(self.middle.unsigned_abs()).saturating_mul(steps)
            > between_steps.saturating_mul(SIGNIFICANT * SIGNIFICANT)
    }

    pub(crate) fn straggler(&self, rank: RankLabel, times: &OwnTimes, least: u64) -> Straggler {
        let by_cause: [i64; Cause::ALL.len()] =
            std::array::from_fn(|cause| median(&mut self.by_cause[cause].clone()).unwrap_or(0));
        let excess = self.middle.unsigned_abs();
        Straggler {
            rank,
            excess: Nanos(excess),
            share: (excess as f64 / times.step.0.max(1) as f64).min(1.0),
            slow_steps: self.slow_steps(least),
            steps: self.per_step.len(),
            cause: named_cause(by_cause, excess),
            by_cause,
        }
    }
}

/// Returns the cause that covers most of a difference.
pub(crate) fn named_cause(by_cause: [i64; Cause::ALL.len()], excess: u64) -> Option<Cause> {
    let causes = Cause::ALL.into_iter().zip(by_cause);
    let (cause, most) = causes.max_by_key(|&(_, time)| time)?;
    let covers = most > 0
        && u128::from(most.unsigned_abs()) * 100 >= u128::from(excess) * u128::from(NAMED_PERCENT);
    (covers && excess > 0).then_some(cause)
}

/// Returns the difference between a rank's times by cause and the median rank's.
pub(crate) fn differences(own: &ByCause, middle: &ByCause) -> [i64; Cause::ALL.len()] {
    std::array::from_fn(|cause| difference(own[cause], middle[cause]))
}

pub(crate) fn difference(one: u64, other: u64) -> i64 {
    let difference = i128::from(one) - i128::from(other);
    i64::try_from(difference).unwrap_or(if one > other { i64::MAX } else { i64::MIN })
}
