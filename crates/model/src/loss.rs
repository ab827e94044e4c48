//! Lost events, counted by cause. No event is lost without being counted here.

/// The cause for which events are missing from a profile. Tables, traces and warnings show it, so
/// that the user can tell a full budget from a damaged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossCause {
    /// The byte budget of the recording was spent.
    Budget,
    /// The name did not fit into the byte budget, or was one of too many function names.
    Names,
    /// The event was nested deeper than the recorder follows: a scope that was still open at the
    /// end, or a Python call.
    Depth,
    /// A Python call that the recorder could not see: another tool owns the interpreter's profile
    /// hook, or the call began on another thread before the hook was set. This is a lower bound:
    /// only calls that were still running when an operator looked are counted.
    Unseen,
    /// A kernel that was launched but that the device's own recorder did not report.
    Unreported,
    /// The event was in a damaged part of a file.
    Damaged,
    /// The recording of a worker process that died or did not hand it over in time. This is a lower
    /// bound: each such process counts as one.
    Workers,
    /// The results of torch's own collector, for a recording that something else ended. This is a
    /// lower bound: each such recording counts as one.
    Collections,
}

impl LossCause {
    /// Every cause, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::Budget,
        Self::Names,
        Self::Depth,
        Self::Unseen,
        Self::Unreported,
        Self::Damaged,
        Self::Workers,
        Self::Collections,
    ];

    /// Returns the cause as words that follow "lost".
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Budget => "over the byte budget",
            Self::Names => "with names over the byte budget",
            Self::Depth => "nested too deep",
            Self::Unseen => "in Python calls that another tool hides or that had begun before",
            Self::Unreported => "that a device did not report",
            Self::Damaged => "in a damaged part of the file",
            Self::Workers => "of workers that died or were late, at least one each",
            Self::Collections => "of recordings that torch lost as a whole, at least one each",
        }
    }
}

/// The counts of lost events by cause. A profile carries it from the recorder or the reader to
/// every output, so that incomplete data is never shown as complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    counts: [u64; LossCause::ALL.len()],
}

impl Loss {
    /// Adds `count` events lost for `cause`.
    pub fn add(&mut self, cause: LossCause, count: u64) {
        let sum = &mut self.counts[cause as usize];
        *sum = sum.saturating_add(count);
    }

    /// Returns the number of events lost for `cause`.
    pub const fn count(&self, cause: LossCause) -> u64 {
        self.counts[cause as usize]
    }

    /// Returns the losses since a moment at which `before` was the total.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let count = |index: usize| self.counts[index].saturating_sub(before.counts[index]);
        Self {
            counts: std::array::from_fn(count),
        }
    }

    /// Adds the losses of another source.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
    }

    /// Returns the number of events lost for any cause.
    pub fn total(&self) -> u64 {
        let sum = |sum: u64, &count: &u64| sum.saturating_add(count);
        self.counts.iter().fold(0, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_cause_and_summed() {
        let mut loss = Loss::default();
        loss.add(LossCause::Budget, 3);
        loss.add(LossCause::Depth, 1);
        loss.add(LossCause::Budget, 2);
        assert_eq!(loss.count(LossCause::Budget), 5);
        assert_eq!(loss.count(LossCause::Damaged), 0);
        assert_eq!(loss.total(), 6);
    }

    #[test]
    fn absurd_counts_of_a_file_do_not_overflow() {
        let mut loss = Loss::default();
        loss.add(LossCause::Budget, u64::MAX);
        loss.add(LossCause::Budget, 1);
        loss.add(LossCause::Depth, u64::MAX);
        let other = loss;
        loss.merge(&other);
        assert_eq!(loss.total(), u64::MAX);
    }

    #[test]
    fn what_was_lost_between_two_moments_is_the_difference() {
        let mut before = Loss::default();
        before.add(LossCause::Unseen, 2);
        let mut after = before;
        after.add(LossCause::Unseen, 3);
        after.add(LossCause::Budget, 1);
        let mut sum = before;
        sum.merge(&after.since(&before));
        assert_eq!(sum, after);
    }
}
