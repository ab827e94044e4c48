//! The verdict of a comparison: whether one profile is slower than another beyond a limit, or
//! cannot be judged at all.
//!
//! The verdict is part of the library, not of `mindprof diff --fail-over`, so that every interface
//! that judges a comparison accepts and refuses the same traces.

use mindprof_model::Nanos;

use crate::diff::{Diff, Side};

/// The numbers that a limit applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailOn {
    /// The profile as a whole: CPU time and device time separately, or the number of events.
    #[default]
    Total,
    /// Each row, whose growth is measured as a share of the first profile as a whole.
    Row,
}

/// The amount by which the second profile may exceed the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The largest accepted growth, for example 0.05 for five percent.
    pub share: f64,
    /// The numbers that the limit applies to.
    pub fail_on: FailOn,
}

/// Facts about a compared profile that its events do not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Whether its trace was damaged or cut off, so that events may be missing.
    pub is_damaged: bool,
}

/// The part of a profile that grew most.
#[derive(Clone, Debug, PartialEq)]
pub enum Grown {
    /// A number of the profile as a whole.
    Whole(Side),
    /// The row with this key.
    Row(String),
    /// Nothing grew.
    Nothing,
}

/// The verdict of a comparison.
///
/// It is data: the callers word it and choose an exit status or a return value.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing grew beyond the limit.
    Within {
        /// The part that grew most.
        what: Grown,
        /// Its relative growth.
        growth: f64,
    },
    /// Something grew beyond the limit.
    Exceeded {
        /// The part that grew most.
        what: Grown,
        /// Its relative growth, which is infinite if it was zero before.
        growth: f64,
    },
    /// The profiles cannot be judged.
    Refused(Refusal),
}

/// The reason why profiles cannot be judged.
///
/// Missing work cannot grow, so a limit alone would accept a trace that is damaged or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The trace was damaged or cut off.
    Damaged {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// The profile has no events at all.
    Empty {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// The profile has events, but no operators, ranges or device work.
    NothingToCompare {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// No device worked in the second profile, while devices worked in the first.
    NoDeviceWork,
}

impl Refusal {
    /// Returns whether the refusal concerns the second of the two profiles.
    pub const fn is_second(self) -> bool {
        match self {
            Self::Damaged { is_second }
            | Self::Empty { is_second }
            | Self::NothingToCompare { is_second } => is_second,
            Self::NoDeviceWork => true,
        }
    }
}

impl Verdict {
    /// Judges a comparison. `conditions` are those of the first and the second profile.
    pub fn build(diff: &Diff, conditions: [Condition; 2], limit: Limit) -> Self {
        if let Some(refusal) = refusal(diff, conditions) {
            return Self::Refused(refusal);
        }
        let (what, growth) = grown(diff, limit.fail_on);
        if growth <= limit.share {
            Self::Within { what, growth }
        } else {
            Self::Exceeded { what, growth }
        }
    }
}

fn refusal(diff: &Diff, conditions: [Condition; 2]) -> Option<Refusal> {
    let sides = [false, true];
    for (is_second, condition) in sides.into_iter().zip(conditions) {
        if condition.is_damaged {
            return Some(Refusal::Damaged { is_second });
        }
    }
    for (is_second, whole) in sides.into_iter().zip([&diff.before, &diff.after]) {
        if whole.recorded == 0 {
            return Some(Refusal::Empty { is_second });
        }
        if whole.count == 0 {
            return Some(Refusal::NothingToCompare { is_second });
        }
    }
    let lost_devices = diff.before.device > Nanos::ZERO && diff.after.device == Nanos::ZERO;
    lost_devices.then_some(Refusal::NoDeviceWork)
}

/// Returns the part that grew most, and its relative growth.
fn grown(diff: &Diff, fail_on: FailOn) -> (Grown, f64) {
    match (fail_on, diff.worst()) {
        (FailOn::Row, Some(row)) => (Grown::Row(row.key.clone()), diff.row_growth(row)),
        (FailOn::Row, None) => (Grown::Nothing, 0.0),
        (FailOn::Total, _) => {
            let (side, growth) = diff.most_grown();
            (Grown::Whole(side), growth)
        }
    }
}

#[cfg(test)]
mod tests {
    use mindprof_analyze::Analysis;
    use mindprof_model::{Profile, Timeline};

    use super::*;
    use crate::diff::DiffOptions;

    const SOUND: [Condition; 2] = [Condition { is_damaged: false }; 2];

    fn profile(time: u64) -> Profile {
        Timeline::draw(|draw| draw.op("mm", time))
    }

    fn judged(before: Profile, after: Profile, conditions: [Condition; 2]) -> Verdict {
        let (before, after) = (Analysis::build(before), Analysis::build(after));
        let diff = Diff::build(&before, &after, DiffOptions::default());
        let limit = Limit {
            share: 0.05,
            fail_on: FailOn::Total,
        };
        Verdict::build(&diff, conditions, limit)
    }

    #[test]
    fn growth_up_to_the_limit_is_within() {
        let verdict = judged(profile(100), profile(105), SOUND);
        assert!(matches!(verdict, Verdict::Within { growth, .. } if growth > 0.049));
        let verdict = judged(profile(100), profile(106), SOUND);
        let whole = Grown::Whole(Side::Host);
        assert!(matches!(verdict, Verdict::Exceeded { what, .. } if what == whole));
    }

    #[test]
    fn a_damaged_trace_is_refused_first() {
        let mut conditions = SOUND;
        conditions[1].is_damaged = true;
        assert_eq!(
            judged(Timeline::draw(|_| {}), profile(1), conditions),
            Verdict::Refused(Refusal::Damaged { is_second: true })
        );
    }

    #[test]
    fn a_profile_without_events_is_refused() {
        assert_eq!(
            judged(profile(1), Timeline::draw(|_| {}), SOUND),
            Verdict::Refused(Refusal::Empty { is_second: true })
        );
    }
}
