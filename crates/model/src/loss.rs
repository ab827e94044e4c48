//! What was not kept, by cause. A profile never loses an event without a count here.

/// Why an event is missing from a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossCause {
    /// The byte budget of the recording was spent.
    Budget,
    /// The scope was still open at the end, nested deeper than the recorder follows open scopes.
    Depth,
    /// The event stood in a damaged part of a file.
    Damaged,
}

impl LossCause {
    /// Every cause, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Budget, Self::Depth, Self::Damaged];

    /// Returns the cause in words, to follow "lost".
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Budget => "over the byte budget",
            Self::Depth => "open too deep at the end",
            Self::Damaged => "in a damaged part of the file",
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
}
