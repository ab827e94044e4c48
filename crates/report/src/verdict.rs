//! The verdict of a comparison as a sentence that names the time or row that grew, or the reason why
//! the profiles cannot be judged.

use mindprof_answers::{FailOn, Grown, Limit, Refusal, Side, Verdict};

use crate::visible::visible;

/// Returns the sentence for a verdict; `None` if nothing grew beyond the limit.
pub fn verdict_text(verdict: &Verdict, limit: Limit) -> Option<String> {
    match verdict {
        Verdict::Within { .. } => None,
        Verdict::Exceeded { what, growth } => {
            let share = percent(limit.share);
            let what = grown_text(what);
            Some(format!(
                "{what} grew {}, more than {share}%",
                by(*growth, limit.fail_on)
            ))
        }
        Verdict::Refused(refusal) => Some(refusal_text(*refusal).into()),
    }
}

/// Returns why a profile cannot be judged against a limit, without its name.
pub const fn refusal_text(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Damaged { .. } => "is damaged or cut off: it cannot be judged against a limit",
        Refusal::Empty { .. } => "has no events: it cannot be judged against a limit",
        Refusal::NothingToCompare { .. } => {
            "has no operators, ranges or device work: it cannot be judged against a limit"
        }
        Refusal::NoDeviceWork => {
            "has no device work, but the first does: they cannot be judged against a limit"
        }
    }
}

/// Returns what to do about a refusal.
pub const fn refusal_hint(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Damaged { .. } => "record or copy it again, or run without --fail-over",
        Refusal::Empty { .. } | Refusal::NothingToCompare { .. } | Refusal::NoDeviceWork => {
            "see what was recorded with `mindprof info`"
        }
    }
}

fn grown_text(what: &Grown) -> String {
    match what {
        Grown::Whole(Side::Host) => "CPU time".into(),
        Grown::Whole(Side::Devices) => "device time".into(),
        Grown::Whole(Side::Events) => "the number of events".into(),
        Grown::Row(key) => visible(key).into_owned(),
        Grown::Nothing => "nothing".into(),
    }
}

fn by(growth: f64, fail_on: FailOn) -> String {
    if !growth.is_finite() {
        return "from nothing".into();
    }
    let of_what = match fail_on {
        FailOn::Row => " of the whole",
        FailOn::Total => "",
    };
    format!("by {:.1}%{of_what}", growth * 100.0)
}

/// Returns a share in percent, without the noise of its last digits.
fn percent(share: f64) -> f64 {
    (share * 1e11).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_one_sentence() {
        let limit = Limit {
            share: 0.05,
            fail_on: FailOn::Total,
        };
        let verdict = Verdict::Exceeded {
            what: Grown::Whole(Side::Host),
            growth: 0.158,
        };
        let text = verdict_text(&verdict, limit).unwrap();
        assert_eq!(text, "CPU time grew by 15.8%, more than 5%");
        let verdict = Verdict::Exceeded {
            what: Grown::Row("aten::mm".into()),
            growth: f64::INFINITY,
        };
        let text = verdict_text(&verdict, limit).unwrap();
        assert_eq!(text, "aten::mm grew from nothing, more than 5%");
        let verdict = Verdict::Within {
            what: Grown::Nothing,
            growth: 0.0,
        };
        assert_eq!(verdict_text(&verdict, limit), None);
    }
}
