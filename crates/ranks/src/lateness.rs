//! In how many steps a rank came late to collectives, so that others waited for it.

use std::collections::BTreeMap;

use mindprof_model::Nanos;

use crate::arrivals::Arrival;

/// A rank must be late in at least this share of the steps to be waited for.
const LATE_PERCENT: usize = 50;

/// A rank is late in a step if it comes later than the median rank by this part of a step, in all
/// collectives of the step together.
const LATE_PART: u64 = 40;

/// For each rank, the number of steps in which it came to a collective with a common clock, and of
/// those in which it was late.
#[derive(Debug)]
pub(crate) struct Lateness {
    of_ranks: Vec<(usize, usize)>,
}

impl Lateness {
    /// Counts steps in time nearly linear in the number of collectives and their ranks. `noise` is a
    /// skew that the clocks may feign, and `step` the usual length of a step.
    pub(crate) fn build(ranks: usize, arrivals: &[Arrival], noise: Nanos, step: Nanos) -> Self {
        let mut steps: BTreeMap<(usize, u64), Nanos> = BTreeMap::new();
        for arrival in arrivals {
            let Some(step) = arrival.step else { continue };
            for &(rank, behind) in &arrival.ranks {
                let sum = steps.entry((rank, step)).or_default();
                *sum = sum.saturating_add(if behind > noise { behind } else { Nanos::ZERO });
            }
        }
        let least = Nanos((step.0 / LATE_PART).max(1));
        let mut of_ranks = vec![(0, 0); ranks];
        for ((rank, _), behind) in steps {
            of_ranks[rank].0 += 1;
            of_ranks[rank].1 += usize::from(behind >= least);
        }
        Self { of_ranks }
    }

    /// Returns whether others waited for a rank in most steps, or `None` if no clock tells.
    pub(crate) fn is_waited_for(&self, rank: usize) -> Option<bool> {
        let (seen, late) = self.of_ranks[rank];
        (seen > 0).then_some(late * 100 >= seen * LATE_PERCENT)
    }
}
