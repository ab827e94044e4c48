//! The profile itself is not good enough for conclusions.

use mindprof_model::{Category, Nanos};

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "bad-capture",
    cause: "the profile itself is not good enough for conclusions",
    remedy: "record at least two steps: profile(schedule=schedule(wait=1, warmup=1, active=3)) and prof.step()",
    price: Price::Unpriced { rank: 0.015 },
    needs: &[],
    check,
};

/// Fewer steps tell nothing about what differs from step to step.
const ENOUGH_STEPS: u64 = 2;

/// The largest parts that may be lost, or be the profiler's own.
const LOST: f64 = 0.01;
const RECORDING: f64 = 0.5;

/// The largest part of the time about which a profile without Python calls may say nothing.
const UNKNOWN: f64 = 0.5;

fn check(facts: &Facts<'_>) -> Outcome {
    let Some((name, remedy)) = flaw(facts) else {
        return Outcome::Clean;
    };
    Outcome::Found(Evidence {
        name: Some(name.to_owned()),
        blame: Some(Blame::Nobody),
        remedy,
        ..Evidence::default()
    })
}

/// Returns what is wrong with the recording, and what to do about it if it differs from the rule's.
fn flaw(facts: &Facts<'_>) -> Option<(&'static str, Option<&'static str>)> {
    let lost = facts.profile.loss().total() as f64;
    if lost > LOST * facts.profile.events().len() as f64 {
        let remedy = "record fewer steps, or with fewer options, so that no event is lost";
        return Some(("events were lost", Some(remedy)));
    }
    if facts.completeness.unanswered_launches.is_some() {
        let remedy = "call torch.cuda.synchronize() before the profiler stops, and record ProfilerActivity.CUDA";
        return Some(("kernels are missing", Some(remedy)));
    }
    if facts.completeness.limit.is_some() {
        let remedy = "record without only=: most rules need every operator";
        return Some(("only some operators were recorded", Some(remedy)));
    }
    let recorded = facts.replay.recorded().total().0;
    let recording = recorded.saturating_sub(facts.base.0);
    if recording as f64 > RECORDING * recorded as f64 {
        let remedy = "record without with_stack, record_shapes and profile_memory";
        return Some(("recording took most of the time", Some(remedy)));
    }
    if facts.calls.is_empty() && facts.profile.stacks().is_empty() && is_mostly_unknown(facts) {
        let remedy = "record with_stack=True, which shows the Python code that runs or waits between the operators";
        return Some(("most of the time has nothing recorded in it", Some(remedy)));
    }
    let steps = facts.completeness.steps;
    // A program without any steps may have no loop.
    (1..ENOUGH_STEPS)
        .contains(&steps)
        .then_some(("fewer than two steps", None))
}

/// Returns whether most of the time of the steps is in no operator, no call of a device's runtime, no
/// device work and no range of a data loader or an optimizer.
fn is_mostly_unknown(facts: &Facts<'_>) -> bool {
    let mut known = Nanos::ZERO;
    let mut end = Nanos::ZERO;
    for &id in &facts.events {
        let event = facts.profile.event(id);
        let around = facts.around(id);
        let is_range = event.category == Category::Annotation;
        if is_range && !around.is_loading && !around.is_optimizer {
            continue;
        }
        known = known + event.end().saturating_sub(event.start.max(end));
        end = end.max(event.end());
    }
    let all = facts.replay.recorded().total();
    (known.0 as f64) < (1.0 - UNKNOWN) * all.0 as f64
}

#[cfg(test)]
mod tests {
    use mindprof_model::{OperatorLimit, Part};

    use crate::advice::rules::kit::*;

    fn flaw(profile: mindprof_model::Profile) -> Option<String> {
        let findings = advise(profile).findings.into_iter();
        let mut findings = findings.filter(|found| found.rule.id == "bad-capture");
        findings.next().and_then(|found| found.name)
    }

    #[test]
    fn flaws_of_a_recording_are_hints() {
        let one = training(1, |time, _| time.op("aten::mm", 500));
        assert_eq!(flaw(one).as_deref(), Some("fewer than two steps"));
        let small = training(4, |time, _| {
            for _ in 0..200 {
                time.call("train.py(4): add", |time| time.op("aten::add", 1));
            }
        });
        assert_eq!(
            flaw(small).as_deref(),
            Some("recording took most of the time")
        );
        let missing = training(4, |time, _| {
            time.compute(10, 100);
            for _ in 0..10 {
                time.op("aten::mm", 50);
                time.runtime("cudaLaunchKernel", 10);
            }
        });
        assert_eq!(flaw(missing).as_deref(), Some("kernels are missing"));
        let mut part = Part::from(training(2, |time, _| time.op("aten::mm", 500)));
        OperatorLimit::parse(["depth=1"])
            .unwrap()
            .write(&mut part.metadata);
        let limited = part.into_profile().unwrap();
        assert_eq!(
            flaw(limited).as_deref(),
            Some("only some operators were recorded")
        );
    }

    #[test]
    fn a_program_without_steps_may_have_no_loop() {
        let profile = program(|time| time.op("aten::mm", 500));
        assert_eq!(outcome(profile, "bad-capture"), "clean");
    }

    #[test]
    fn two_steps_are_clean() {
        let profile = training(2, |time, _| time.op("aten::mm", 500));
        assert_eq!(outcome(profile, "bad-capture"), "clean");
    }

    // Only Python code runs there, or it waits for something.
    #[test]
    fn unknown_time_is_a_flaw_without_python_calls() {
        let idle = |with_call: bool| {
            training(4, |time, _| {
                time.op("aten::mm", 500);
                if with_call {
                    time.python("train.py(4): wait", 2_000);
                } else {
                    time.idle(2_000);
                }
            })
        };
        let name = "most of the time has nothing recorded in it";
        assert_eq!(flaw(idle(false)).as_deref(), Some(name));
        assert_eq!(flaw(idle(true)), None);
    }

    // Recording takes a little of every step.
    #[test]
    fn the_usual_cost_of_recording_is_clean() {
        let profile = training(4, |time, _| {
            for _ in 0..50 {
                time.op("aten::add", 20);
            }
        });
        assert_eq!(outcome(profile, "bad-capture"), "clean");
    }
}
