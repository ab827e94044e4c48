//! How the trace of each rank joins those of the others on one time axis.

use crate::clocks::Clocks;
use crate::matched::Matches;
use crate::own_times::OwnTimes;
use crate::ranks::Ranks;
use crate::roster::Roster;
use crate::summary::RankSummary;

/// The place of the trace of one rank among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// The time to add to the rank's clock, in nanoseconds.
    Aligned(i64),
    /// The clock is not known: the rank shares too few collectives with the others.
    Unknown,
    /// The trace repeats a rank or is of another job.
    LeftOut,
}

impl Alignment {
    /// Returns the alignment of each summary, in their order. The offsets are those of
    /// [`crate::JobClocks`].
    pub fn of(ranks: &Ranks) -> Vec<Self> {
        let mut alignments = vec![Self::LeftOut; ranks.summaries().len()];
        let (_, places) = Roster::build(ranks.summaries());
        let kept = places.iter().map(|&place| &ranks.summaries()[place]);
        let kept: Vec<&RankSummary> = kept.collect();
        let matches = Matches::build(&kept);
        let step = OwnTimes::build(&kept, &[]).step;
        let (clocks, _) = Clocks::align(&kept, &matches, step);
        for (&place, clock) in places.iter().zip(&clocks.ranks) {
            alignments[place] = match clock {
                Some(clock) => Self::Aligned(clock.offset_ns),
                None => Self::Unknown,
            };
        }
        alignments
    }
}
