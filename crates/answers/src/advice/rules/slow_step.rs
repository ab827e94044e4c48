//! Something that only some steps do makes them slower than the others.

use mindprof_model::EventId;
use rustc_hash::FxHashMap;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::sampling::Sampling;
use crate::step_split::StepClass;
use crate::step_times::StepTimes;
use crate::top_operators::CodePlace;

pub(super) const RULE: Rule = Rule {
    id: "slow-step",
    cause: "some steps take longer than the others",
    remedy: "do it less often, or in the background: a thread that saves a copy of the state",
    price: Price::replay(0.03, (0.6, 1.2)),
    check,
};

/// The least number of steps of which some can be told to be slow.
const ENOUGH_STEPS: usize = 5;

/// Operators that take this part of the difference longer do not explain it: the machine does.
const SAME_WORK: f64 = 0.5;

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.replay.steps().len() < ENOUGH_STEPS {
        return Outcome::Unknown("slow steps can be told from at least five steps");
    }
    let calls = occasional_calls(facts);
    if !calls.is_empty() {
        let frame = facts.frames[calls[0].index()];
        return found(facts, calls, frame.map(Blame::Frame), None);
    }
    let times = StepTimes::build(facts.analysis, facts.own);
    let Some(slowest) = times.slow.first() else {
        return Outcome::Clean;
    };
    let Some(grown) = &slowest.growth.function else {
        return Outcome::Clean;
    };
    // Late batches have rules of their own, and so has a first step that prepares the others.
    let first = times.steps.first().map(|time| time.step.number);
    let is_start = times.slow_count == 1 && Some(slowest.step.number) == first;
    if is_start || slowest.class == StepClass::DataLoading {
        return Outcome::Clean;
    }
    let slow: Vec<u64> = times.slow.iter().map(|slow| slow.step.number).collect();
    let is_slow_step = |step: u32| {
        let step = (step as usize).checked_sub(1);
        let step = step.map(|step| facts.replay.steps()[step]);
        step.is_some_and(|step| slow.contains(&step.number))
    };
    // If all operators take longer, the machine was slower in these steps.
    let excess: u64 = times.slow.iter().map(|slow| slow.excess.0).sum();
    let excess = excess as f64 / (times.slow.len() as u64 * times.p50.0).max(1) as f64;
    let slowdown = facts.slowdown(is_slow_step, |step| !is_slow_step(step));
    if slowdown > SAME_WORK.mul_add(excess, 1.0) {
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

fn found(
    facts: &Facts<'_>,
    calls: Vec<EventId>,
    blame: Option<Blame>,
    name: Option<String>,
) -> Outcome {
    let mut mending = Mending::default();
    for id in facts.all_inside(&calls) {
        mending.scale(id, 0.0);
        mending.unblock(id);
    }
    Outcome::Found(Evidence {
        events: calls,
        mending,
        blame,
        name,
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
