//! Something that only some steps do makes them slower than the others.

use mindprof_model::{EventId, Place, StringId};
use rustc_hash::FxHashMap;

use super::passes::{Pass, passes_of};
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;
use crate::sampling::Sampling;
use crate::step_split::StepClass;
use crate::step_times::StepTimes;
use crate::top_operators::CodePlace;

pub(super) const RULE: Rule = Rule {
    id: "slow-step",
    cause: "some steps take longer than the others",
    remedy: "do it less often, or in the background: a thread that saves a copy of the state",
    price: Price::replay(0.03, (0.6, 1.2)),
    needs: &[EventKind::Cpu],
    check,
};

/// The change to try if the slow steps measure the model.
const VALIDATION: &str = "validate less often, on fewer batches, or in a process of its own";

/// The least number of steps of which some can be told to be slow.
const ENOUGH_STEPS: usize = 5;

/// The function by which a module computes.
const FORWARD: &str = "forward";

/// At least this part of the difference is work that the other steps do not have. Otherwise the same
/// work takes longer.
const SAME_WORK: f64 = 0.5;

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.replay.steps().len() < ENOUGH_STEPS {
        return Outcome::Unknown("it takes at least five steps to recognize a slow one");
    }
    let calls = occasional_calls(facts);
    if !calls.is_empty() {
        let frame = facts.frames[calls[0].index()];
        return found(facts, calls, frame.map(Blame::Frame), None);
    }
    let times = StepTimes::build(facts.analysis, facts.own);
    // A first step that prepares the others has a rule of its own.
    let first = times.steps.first().map(|time| time.step.number);
    let is_later = |number: u64| Some(number) != first;
    let slow: Vec<_> = (times.slow.iter().filter(|slow| is_later(slow.step.number))).collect();
    let Some(slowest) = slow.first() else {
        return Outcome::Clean;
    };
    let Some(grown) = &slowest.growth.function else {
        return Outcome::Clean;
    };
    // Late batches have rules of their own.
    if slowest.class == StepClass::DataLoading {
        return Outcome::Clean;
    }
    let excess: u64 = slow.iter().map(|slow| slow.excess.0).sum();
    let slow: Vec<u64> = slow.iter().map(|slow| slow.step.number).collect();
    let is_slow_step = |step: u32| {
        let step = (step as usize).checked_sub(1);
        let step = step.map(|step| facts.replay.steps()[step]);
        step.is_some_and(|step| slow.contains(&step.number))
    };
    // If the same work takes longer, the machine was slower in these steps, or had something else to
    // do at times.
    let more = more_work(facts, is_slow_step);
    if (more as f64) < SAME_WORK * excess as f64 {
        return Outcome::Clean;
    }
    // The step would be as fast as the median without the function that grew in it.
    let is_slow = |id: EventId| is_slow_step(facts.around(id).step);
    let is_grown = facts.names(|name| {
        let place = facts.own.place(name);
        place.is_some_and(|place| place.function == grown.function && place.file == grown.file)
    });
    let calls: Vec<EventId> = (facts.calls.iter().copied())
        .filter(|&id| is_grown[facts.profile.event(id).name.index()] && is_slow(id))
        .collect();
    let place = CodePlace {
        file: grown.file.clone(),
        function: grown.function.clone(),
        line: grown.line,
    };
    let operator = slowest.growth.operator.as_ref();
    let name = operator.map(|operator| operator.name.clone());
    found(facts, calls, Some(Blame::Place(place)), name)
}

/// Returns the time of the work that slow steps have beyond that of the others: of the events of each
/// name, as many as there are more of them.
fn more_work(facts: &Facts<'_>, is_slow: impl Fn(u32) -> bool) -> u64 {
    // By name, the time and number in slow steps, and the number in the others.
    let mut sums: FxHashMap<StringId, (u64, u64, u64)> = FxHashMap::default();
    for &id in &facts.events {
        let sum = sums.entry(facts.profile.event(id).name).or_default();
        if is_slow(facts.around(id).step) {
            sum.0 += facts.analysis.tree().self_time(id).0;
            sum.1 += 1;
        } else {
            sum.2 += 1;
        }
    }
    let steps = facts.replay.steps().len();
    let slow = (1..=steps as u32).filter(|&step| is_slow(step)).count();
    let ratio = slow as f64 / (steps - slow).max(1) as f64;
    let more = sums.values().map(|&(time, slow, usual)| {
        let more = (slow as f64 - usual as f64 * ratio).max(0.0);
        time as f64 * more / (slow.max(1)) as f64
    });
    more.sum::<f64>() as u64
}

fn found(
    facts: &Facts<'_>,
    calls: Vec<EventId>,
    blame: Option<Blame>,
    name: Option<String>,
) -> Outcome {
    let inside = facts.inside(&calls);
    let passes = passes_of(facts, Pass::WithoutGradients, true);
    let remedy = (passes.iter().any(|id| inside[id.index()])).then_some(VALIDATION);
    let mut mending = Mending::default();
    for &id in facts.events.iter().filter(|id| inside[id.index()]) {
        mending.scale(id, 0.0);
        mending.unblock(id);
    }
    // What a model does in some steps only, such as a rollout, is work that the program wants.
    let is_forward = |function: &str| function.rsplit('.').next() == Some(FORWARD);
    let is_hint = match &blame {
        Some(Blame::Frame(frame)) => {
            let place = Place::parse(facts.profile.strings().text(*frame));
            place.is_some_and(|place| is_forward(place.function))
        }
        Some(Blame::Place(place)) => is_forward(&place.function),
        _ => false,
    };
    Outcome::Found(Evidence {
        events: calls,
        mending,
        blame,
        name,
        remedy,
        is_hint,
        ..Evidence::default()
    })
}

/// Returns the calls of the function of the user's that only some steps make and that takes most
/// time. Samples cannot tell: they meet a short function in some steps by chance.
fn occasional_calls(facts: &Facts<'_>) -> Vec<EventId> {
    if Sampling::read(facts.profile.metadata()).is_some() {
        return Vec::new();
    }
    let is_own = facts.names(|name| facts.own.place(name).is_some());
    let mut by_name: FxHashMap<_, Vec<EventId>> = FxHashMap::default();
    for &id in &facts.calls {
        let name = facts.profile.event(id).name;
        if is_own[name.index()] && !facts.around(id).is_loading {
            by_name.entry(name).or_default().push(id);
        }
    }
    let steps = facts.replay.steps().len();
    let is_occasional = |calls: &[EventId]| {
        let mut with: Vec<u32> = calls.iter().map(|&id| facts.around(id).step).collect();
        with.dedup();
        with.sort_unstable();
        with.dedup();
        with.len() * 2 <= steps
    };
    let time = |calls: &[EventId]| calls.iter().map(|&id| facts.duration(id).0).sum::<u64>();
    let most = by_name
        .into_values()
        .filter(|calls| is_occasional(calls))
        .max_by_key(|calls| (time(calls), calls[0]));
    most.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;
    use crate::advice::rules::passes::drawn::{forward, train};

    fn saving(micros: u64, steps: u64) -> mindprof_model::Profile {
        training(steps, |time, step| {
            time.call("train.py(20): step", |time| time.op("aten::mm", 1_000));
            if step % 4 == 3 {
                time.call("train.py(40): save_checkpoint", |time| {
                    time.op("aten::copy_", micros);
                });
            }
        })
    }

    #[test]
    fn steps_that_do_more_than_others_are_found() {
        let finding = found(saving(2_000, 8), "slow-step");
        assert_eq!(blamed(&finding), "save_checkpoint");
        assert_saves(&finding, 0.33);
    }

    // An agent acts in its environment in one step of four.
    #[test]
    fn a_model_that_computes_in_some_steps_has_no_price() {
        let profile = training(8, |time, step| {
            time.call("train.py(20): step", |time| time.op("aten::mm", 1_000));
            if step % 4 == 3 {
                time.call("train.py(7): forward", |time| time.op("aten::mm", 2_000));
            }
        });
        let finding = found(profile, "slow-step");
        assert_eq!(blamed(&finding), "forward");
        assert!(finding.share.abs() < 1e-9, "{}", finding.share);
    }

    #[test]
    fn a_validation_has_a_remedy_of_its_own() {
        let profile = training(8, |time, step| {
            train(time, step);
            if step % 4 == 3 {
                time.call("train.py(40): run_on_held_out", |time| {
                    forward(time, "Net_0", None, 3_000);
                });
            }
        });
        let finding = found(profile, "slow-step");
        assert_eq!(blamed(&finding), "run_on_held_out");
        assert!(finding.remedy.starts_with("validate"), "{}", finding.remedy);
        let saving = found(saving(2_000, 8), "slow-step");
        assert!(!saving.remedy.starts_with("validate"));
    }

    #[test]
    fn small_differences_are_clean() {
        assert_eq!(outcome(saving(100, 8), "slow-step"), "clean");
        assert_eq!(outcome(saving(2_000, 4), "slow-step"), "unknown");
    }

    #[test]
    fn a_slow_first_step_is_a_start() {
        let profile = || {
            training(8, |time, step| {
                time.call("train.py(20): step", |time| {
                    time.op("aten::mm", if step == 0 { 9_000 } else { 1_000 });
                });
            })
        };
        assert_eq!(outcome(profile(), "slow-step"), "clean");
        assert_eq!(outcome(profile(), "slow-start"), "found");
    }

    // The machine was slower for a while.
    #[test]
    fn steps_of_the_same_work_are_clean() {
        let profile = training(8, |time, step| {
            let factor = if step == 5 { 4 } else { 1 };
            time.call("train.py(20): step", |time| {
                time.op("aten::mm", 1_000 * factor);
                time.op("aten::relu", 300 * factor);
            });
        });
        assert_eq!(outcome(profile, "slow-step"), "clean");
    }

    // The machine did something else in the middle of an operator.
    #[test]
    fn one_operator_that_takes_longer_is_clean() {
        let draw = |calls: u64| {
            training(8, move |time, step| {
                time.call("train.py(20): step", |time| {
                    time.op("aten::mm", 1_000);
                    let is_slow = step == 5;
                    time.op("aten::relu", if is_slow { 3_000 / calls } else { 30 });
                    for _ in 1..if is_slow { calls } else { 1 } {
                        time.op("aten::relu", 3_000 / calls);
                    }
                });
            })
        };
        assert_eq!(outcome(draw(1), "slow-step"), "clean");
        assert_eq!(outcome(draw(10), "slow-step"), "found");
    }

    // Every step saves, which is slow but no outlier.
    #[test]
    fn what_every_step_does_is_clean() {
        let profile = training(8, |time, _| {
            time.call("train.py(20): step", |time| time.op("aten::mm", 1_000));
            time.call("train.py(40): save_checkpoint", |time| {
                time.op("aten::copy_", 2_000);
            });
        });
        assert_eq!(outcome(profile, "slow-step"), "clean");
    }
}
