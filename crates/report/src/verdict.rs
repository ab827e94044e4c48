//! The verdict of a comparison as a sentence that names the time or row that grew, or the reason why
//! the profiles cannot be judged.

use mindprof_answers::{Doubt, EventKind, Extra, FailOn, Grown, Limit, Refusal, Side, Verdict};
use mindprof_formats::counted;

use crate::visible::visible;

/// Returns the sentence for a verdict.
pub fn verdict_text(verdict: &Verdict, limit: Limit) -> String {
    let share = percent(limit.share);
    match verdict {
        Verdict::Within {
            what: Grown::Nothing,
            ..
        } => format!("no row grew, within {share}%"),
        Verdict::Within { what, growth } => {
            let what = grown_text(what);
            format!("{what} {}, within {share}%", grew(*growth, limit.fail_on))
        }
        Verdict::Exceeded { what, growth } => {
            let what = grown_text(what);
            format!(
                "{what} {}, more than {share}%",
                grew(*growth, limit.fail_on)
            )
        }
        Verdict::Refused(refusal) => refusal_text(*refusal),
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
        | Refusal::FewerDevices { .. }
        | Refusal::NothingInCommon => "they",
        Refusal::Damaged { .. }
        | Refusal::LacksRecordings { .. }
        | Refusal::Unreadable { .. }
        | Refusal::Lost { .. }
        | Refusal::Cut { .. }
        | Refusal::Limited { .. }
        | Refusal::LacksDeviceWork { .. }
        | Refusal::Empty { .. }
        | Refusal::NothingToCompare { .. }
        | Refusal::NoTime { .. } => "it",
    };
    let reason = reason_text(refusal, "the first");
    format!("{reason}: {pronoun} cannot be judged against a limit")
}

/// Returns what is missing from a profile as a sentence without its full stop, or `None` if nothing
/// is.
pub(crate) fn incomplete_text(missing: &[Refusal]) -> Option<String> {
    let reasons: Vec<String> = missing.iter().map(|&one| reason_text(one, "")).collect();
    (!reasons.is_empty()).then(|| format!("Incomplete: the trace {}", reasons.join(", and ")))
}

/// Returns the reason of a refusal, without the name of the profile. `first` is the name of the
/// first profile, if the reason is a difference from it.
fn reason_text(refusal: Refusal, first: &str) -> String {
    match refusal {
        Refusal::Damaged { .. } => "is damaged or cut off".into(),
        Refusal::LacksRecordings { .. } => {
            "lacks the recording of a worker or of torch's collector".into()
        }
        Refusal::Limited { .. } => "holds only some of its operators".into(),
        Refusal::Unreadable { .. } => {
            "has a note of loss, cuts or damage that cannot be read".into()
        }
        Refusal::Lost {
            kind,
            events,
            share,
            ..
        } => {
            let (lost, share) = (counted(events, "event"), share * 100.0);
            let kind = match kind {
                EventKind::Cpu => "CPU events",
                EventKind::Device => "device events",
                EventKind::PythonCall => "Python calls",
            };
            format!("lost {lost}, up to {share:.1}% of its {kind}")
        }
        Refusal::Cut { kept, events, .. } => {
            format!("was cut by `mindprof slim` to {kept} of {events} events")
        }
        Refusal::LacksDeviceWork {
            missing, launches, ..
        } => {
            format!("lacks the device work of {missing} of {launches} kernel launches")
        }
        Refusal::FewerSteps { before, after } => {
            let steps = counted(after, "step");
            format!("has {steps}, but {first} has {before}")
        }
        Refusal::FewerRanks { before, after } => {
            let ranks = counted(after, "rank");
            format!("has {ranks}, but {first} has {before}")
        }
        Refusal::FewerDevices {
            kind,
            before,
            after,
        } => {
            let kind = kind.name().to_uppercase();
            let devices = counted(after, &format!("{kind} device"));
            format!("has work of {devices}, but {first} has {before}")
        }
        Refusal::Empty { .. } => "has no events".into(),
        Refusal::NothingToCompare { .. } => "has no operators, ranges or device work".into(),
        Refusal::NoTime { .. } => "has no event with a duration".into(),
        Refusal::NoCpuTime => format!("has no CPU time, but {first} does"),
        Refusal::NoDeviceWork => format!("has no device work, but {first} does"),
        Refusal::NoWorkOf(device) => {
            let device = device.name().to_uppercase();
            format!("has no work of {device} devices, but {first} does")
        }
        Refusal::NoPythonCalls => format!("has no Python calls, but {first} does"),
        Refusal::NothingInCommon => format!("has no row in common with {first}"),
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
        Refusal::Limited { .. } => {
            "record both with the same only=, or accept it as it is with --allow-incomplete"
        }
        Refusal::Unreadable { .. } => {
            "update mindprof, or accept it as it is with --allow-incomplete"
        }
        Refusal::Lost { .. } => {
            "record it with a larger budget, or accept it as it is with --allow-incomplete"
        }
        Refusal::Cut { .. } => "use the whole trace, or accept it as it is with --allow-incomplete",
        Refusal::LacksDeviceWork { .. } => {
            "record ProfilerActivity.CUDA and call torch.cuda.synchronize() before the profiler \
             stops, or accept it as it is with --allow-incomplete"
        }
        Refusal::FewerSteps { .. } | Refusal::FewerRanks { .. } | Refusal::FewerDevices { .. } => {
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
        Doubt::Refusable(refusal) => {
            let name = name(refusal.is_second());
            format!("{name} {}", reason_text(refusal, names[0]))
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

fn grew(growth: f64, fail_on: FailOn) -> String {
    if !growth.is_finite() {
        return "grew from nothing".into();
    }
    if growth == 0.0 {
        return "did not grow".into();
    }
    let of_what = match fail_on {
        FailOn::Row => " of the whole",
        FailOn::Total => "",
    };
    let verb = if growth > 0.0 { "grew" } else { "shrank" };
    format!("{verb} by {:.1}%{of_what}", growth.abs() * 100.0)
}

/// Returns a share in percent, without the noise of its last digits.
fn percent(share: f64) -> f64 {
    (share * 1e11).round() / 1e9
}

#[cfg(test)]
mod tests {
    use mindprof_model::DeviceKind;

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
        let text = verdict_text(&verdict, limit);
        assert_eq!(text, "CPU time grew by 15.8%, more than 5%");
        let verdict = Verdict::Exceeded {
            what: Grown::Row("aten::mm".into()),
            growth: f64::INFINITY,
        };
        let text = verdict_text(&verdict, limit);
        assert_eq!(text, "aten::mm grew from nothing, more than 5%");
        for (what, growth, expected) in [
            (
                Grown::Whole(Side::Host),
                0.0123,
                "CPU time grew by 1.2%, within 5%",
            ),
            (
                Grown::Whole(Side::Devices),
                -0.03,
                "device time shrank by 3.0%, within 5%",
            ),
            (
                Grown::Whole(Side::Events),
                0.0,
                "the number of events did not grow, within 5%",
            ),
            (Grown::Nothing, 0.0, "no row grew, within 5%"),
        ] {
            let verdict = Verdict::Within { what, growth };
            assert_eq!(verdict_text(&verdict, limit), expected);
        }
    }

    #[test]
    fn reasons_name_the_kind_of_what_is_missing() {
        let is_second = true;
        for (refusal, expected) in [
            (
                Refusal::Lost {
                    is_second,
                    kind: EventKind::Device,
                    events: 95,
                    share: 0.95,
                },
                "B lost 95 events, up to 95.0% of its device events",
            ),
            (
                Refusal::Unreadable { is_second },
                "B has a note of loss, cuts or damage that cannot be read",
            ),
            (
                Refusal::FewerDevices {
                    kind: DeviceKind::Cuda,
                    before: 4,
                    after: 1,
                },
                "B has work of 1 CUDA device, but A has 4",
            ),
        ] {
            let text = doubt_text(Doubt::Refusable(refusal), ["A", "B"]);
            assert_eq!(text, expected);
        }
    }
}
