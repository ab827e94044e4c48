//! The work of every rank in every step: the numbers behind a picture of ranks and steps.

use mindprof_model::Nanos;

use crate::label::RankLabel;
use crate::own_times::OwnTimes;
use crate::ranks::Ranks;
use crate::roster::Roster;
use crate::summary::RankSummary;

/// The ranks and steps of a job, with a cell for each rank in each step.
///
/// [`crate::JobAnswer`] reports the ranks and steps that stand out; the grid has all of them, and grows with the number of
/// ranks times that of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepGrid {
    /// The ranks, in the order of their numbers.
    pub ranks: Vec<RankLabel>,
    /// The median duration of a step.
    pub step: Nanos,
    /// The steps that at least two ranks recorded, in order.
    pub steps: Vec<GridStep>,
}

/// One step of a [`StepGrid`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridStep {
    /// The number of the step.
    pub number: u64,
    /// The median time over all ranks that is not communication.
    pub own_p50: Nanos,
    /// The ranks that recorded the step, in order.
    pub cells: Vec<GridCell>,
}

/// One rank in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridCell {
    /// The position of the rank in [`StepGrid::ranks`].
    pub rank: usize,
    /// The duration of the step on this rank.
    pub duration: Nanos,
    /// The part of it that is not communication.
    pub own: Nanos,
}

impl StepGrid {
    /// Builds the grid in time nearly linear in the number of cells.
    pub fn build(ranks: &Ranks) -> Self {
        let (_, kept) = Roster::build(ranks.summaries());
        let kept = kept.iter().map(|&place| &ranks.summaries()[place]);
        let kept: Vec<&RankSummary> = kept.collect();
        let times = OwnTimes::build(&kept, &[]);
        let steps = times.steps.iter().map(|step| GridStep {
            number: step.number,
            own_p50: Nanos(step.own),
            cells: step
                .ranks
                .iter()
                .map(|&(rank, duration, by_cause)| GridCell {
                    rank,
                    duration,
                    own: Nanos(by_cause.iter().sum()),
                })
                .collect(),
        });
        Self {
            ranks: kept.iter().map(|summary| RankLabel::of(summary)).collect(),
            step: times.step,
            steps: steps.collect(),
        }
    }
}

impl GridStep {
    /// Returns how much more than the median rank a rank worked, negative if less, in nanoseconds.
    pub fn excess_ns(&self, cell: &GridCell) -> i64 {
        cell.own.0 as i64 - self.own_p50.0 as i64
    }
}
