//! The exposed time of a rank's collectives, so that those at the same time count once.
//!
//! ```text
//! compute           |---------|
//! collective 1           |---------|      exposed: 4
//! collective 2              |------|      exposed: 4, the same
//! the step's communication    '----'      4, so each of them counts half
//! ```

use rustc_hash::FxHashMap;

use mindprof_answers::StepClass;
use mindprof_model::Nanos;

use crate::collectives::Collective;
use crate::summary::RankSummary;

/// For each rank and step, the time in which the rank does nothing but communicate, and the sum of
/// the exposed times of its collectives, which counts a moment once for each of them.
#[derive(Debug)]
pub(crate) struct Exposed {
    of_ranks: Vec<FxHashMap<u64, (u64, u64)>>,
}

impl Exposed {
    /// Sums up the collectives of all ranks, in time linear in their number.
    pub(crate) fn build(summaries: &[&RankSummary]) -> Self {
        let of_ranks = summaries.iter().map(|summary| {
            let mut sums: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
            for step in &summary.steps {
                let (once, _) = sums.entry(step.number).or_default();
                *once = once.saturating_add(step.time(StepClass::Communication).0);
            }
            for collective in &summary.collectives {
                let sums = collective.step.and_then(|step| sums.get_mut(&step));
                if let Some((_, sum)) = sums {
                    *sum = sum.saturating_add(collective.exposed.0);
                }
            }
            sums
        });
        Self {
            of_ranks: of_ranks.collect(),
        }
    }

    /// Returns the share of a part of a collective's exposed time that is its own.
    pub(crate) fn own(&self, rank: usize, collective: &Collective, part: Nanos) -> Nanos {
        let sums = collective
            .step
            .and_then(|step| self.of_ranks[rank].get(&step));
        match sums {
            Some(&(once, sum)) if sum > once => {
                let own = u128::from(part.0) * u128::from(once) / u128::from(sum);
                Nanos(u64::try_from(own).unwrap_or(part.0))
            }
            Some(_) | None => part,
        }
    }
}
