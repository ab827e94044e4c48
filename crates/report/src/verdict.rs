//! The verdict of a comparison as a sentence that names the time or row that grew, or the reason why
//! the profiles cannot be judged.

use mindprof_answers::{Doubt, Extra, FailOn, Grown, Limit, Refusal, Side, Verdict};
use mindprof_formats::counted;

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
        Verdict::Refused(refusal) => Some(refusal_text(*refusal)),
    }
}

/// Returns why a profile cannot be judged against a limit, without its name.
pub fn refusal_text(refusal: Refusal) -> String {
    let pronoun = match refusal {
        Refusal::NoCpuTime
        | Refusal::NoDeviceWork
        | Refusal::NoWorkOf(_)
        | Refusal::NoPythonCalls
        | Refusal::FewerSteps { .. }
        | Refusal::FewerRanks { .. }
        | Refusal::NothingInCommon => "they",
        Refusal::Damaged { .. }
        | Refusal::LacksRecordings { .. }
        | Refusal::Lost { .. }
        | Refusal::Cut { .. }
        | Refusal::Empty { .. }
        | Refusal::NothingToCompare { .. }
        | Refusal::NoTime { .. } => "it",
    };
    let reason = reason_text(refusal);
    format!("{reason}: {pronoun} cannot be judged against a limit")
}

/// Returns the reason of a refusal, without the name of the profile.
fn reason_text(refusal: Refusal) -> String {
    match refusal {
        Refusal::Damaged { .. } => "is damaged or cut off".into(),
        Refusal::LacksRecordings { .. } => {
            "lacks the recording of a worker or of torch's collector".into()
        }
        Refusal::Lost { events, share, .. } => {
            let share = share * 100.0;
            format!("lost {}, {share:.1}% of all", counted(events, "event"))
        }
        Refusal::Cut { kept, events, .. } => {
            format!("was cut by `mindprof slim` to {kept} of {events} events")
        }
        Refusal::FewerSteps { before, after } => {
            let steps = counted(after, "step");
            format!("has {steps}, but the first has {before}")
        }
        Refusal::FewerRanks { before, after } => {
            let ranks = counted(after, "rank");
            format!("has {ranks}, but the first has {before}")
        }
        Refusal::Empty { .. } => "has no events".into(),
        Refusal::NothingToCompare { .. } => "has no operators, ranges or device work".into(),
        Refusal::NoTime { .. } => "has no event with a duration".into(),
        Refusal::NoCpuTime => "has no CPU time, but the first does".into(),
        Refusal::NoDeviceWork => "has no device work, but the first does".into(),
        Refusal::NoWorkOf(device) => {
            let device = device.name().to_uppercase();
            format!("has no work of {device} devices, but the first does")
        }
        Refusal::NoPythonCalls => "has no Python calls, but the first does".into(),
        Refusal::NothingInCommon => "has no row in common with the first".into(),
    }
}

/// Returns what to do about a refusal.
pub const fn refusal_hint(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Damaged { .. } => {
            "record or copy it again, or accept it as it is with --allow-incomplete"
        }
        Refusal::LacksRecordings { .. } => {
            "record it again, or accept it as it is with --allow-incomplete"
        }
        Refusal::Lost { .. } => {
            "record it with a larger budget, or accept it as it is with --allow-incomplete"
        }
        Refusal::Cut { .. } => {
            "compare the whole traces, or accept it as it is with --allow-incomplete"
        }
        Refusal::FewerSteps { .. } | Refusal::FewerRanks { .. } => {
            "record as many in both, or accept it as it is with --allow-incomplete"
        }
        Refusal::NoTime { .. } => "compare the number of events with --measure count",
        Refusal::Empty { .. }
        | Refusal::NothingToCompare { .. }
        | Refusal::NoCpuTime
        | Refusal::NoDeviceWork
        | Refusal::NoWorkOf(_)
        | Refusal::NoPythonCalls
        | Refusal::NothingInCommon => "see what was recorded with `mindprof info`",
    }
}

/// Returns a doubt about a comparison as a sentence. `names` are those of the two profiles.
pub fn doubt_text(doubt: Doubt, names: [&str; 2]) -> String {
    let name = |is_second: bool| names[usize::from(is_second)];
    match doubt {
        Doubt::Accepted(refusal) => {
            let name = name(refusal.is_second());
            format!("{name} {}", reason_text(refusal))
        }
        Doubt::Lost { is_second, events } => {
            let name = name(is_second);
            format!("{name} lost {}", counted(events, "event"))
        }
        Doubt::Steps { before, after } => differing(names, [before, after], "step"),
        Doubt::Processes { before, after } => differing(names, [before, after], "process"),
        Doubt::OnlyOneHas { what, is_second } => {
            let what = match what {
                Extra::Shapes => "input shapes",
                Extra::Stacks => "Python stacks",
                Extra::Memory => "memory records",
            };
            let name = name(is_second);
            format!("only {name} has {what}, and recording them takes time")
        }
    }
}

fn differing(names: [&str; 2], counts: [u64; 2], noun: &str) -> String {
    let plural = if noun == "process" { "es" } else { "s" };
    let [before, after] = counts.map(|count| {
        let end = if count == 1 { "" } else { plural };
        format!("{count} {noun}{end}")
    });
    let [first, second] = names;
    format!("{first} has {before}, and {second} has {after}")
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
            ..Limit::default()
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
