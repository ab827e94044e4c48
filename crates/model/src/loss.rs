//! What was not kept, by cause. A profile never loses an event without a count here.

/// Why an event is missing from a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossCause {
    /// The byte budget of the recording was spent.
    Budget,
    /// Its name was beyond the byte budget of the recording, or one of too many functions.
    Names,
    /// It was nested deeper than the recorder follows: a scope that was still open at the end, or a
    /// Python call.
    Depth,
    /// A Python call that the recorder could not see: another tool has the interpreter's hook, or
    /// the call had begun on another thread before the hook was there. At least as many: only those
    /// are counted that were still running when an operator looked.
    Unseen,
    /// A kernel that was launched, and that the device's own recorder did not report.
    Unreported,
    /// The event stood in a damaged part of a file.
    Damaged,
    /// What a worker process recorded that died, or did not hand it over in time. At least as many:
    /// each such process counts as one.
    Workers,
    /// What torch's own collector had, of a recording that was ended by others. At least as many:
    /// each such recording counts as one.
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

    /// Returns the cause in words, to follow "lost".
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

/// Counts of lost events by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    counts: [u64; LossCause::ALL.len()],
}

impl Loss {
    /// Adds `count` events lost for `cause`.
    pub fn add(&mut self, cause: LossCause, count: u64) {
        self.counts[cause as usize] += count;
    }

    /// Returns the number of events lost for `cause`.
    pub const fn count(&self, cause: LossCause) -> u64 {
        self.counts[cause as usize]
    }

    /// Returns what was lost since a moment at which `before` was lost.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let count = |index: usize| self.counts[index].saturating_sub(before.counts[index]);
        Self {
            counts: std::array::from_fn(count),
        }
    }

    /// Adds what was lost elsewhere.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    /// Returns the number of events lost for any cause.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
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
