//! A function of the user's spends its time in Python code.

use mindprof_model::{Category, EventId, StringId};
use rustc_hash::FxHashMap;

use crate::advice::facts::{Facts, is_wait_for_thread};
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "python-bound",
    cause: "a function spends its time in Python code",
    remedy: "move the Python loop out of the step, into numpy or torch, or into a data loader worker",
    price: Price::replay(0.05, (0.4, 1.1)),
    check,
};

/// The C function in which a thread waits for backward work that other threads do.
const ENGINE: &str = "run_backward";

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("Python calls were not recorded: with_stack=True");
    }
    // Calls that lead to no operator are Python code alone.
    let events = facts.profile.events();
    let mut has_operator = vec![false; events.len()];
    for index in (0..events.len()).rev() {
        let is_operator = matches!(
            events[index].category,
            Category::Operator | Category::Runtime
        );
        if let Some(parent) = facts.parent(EventId::from_index(index)) {
            has_operator[parent.index()] |= has_operator[index] || is_operator;
        }
    }
    let waits = facts.names(|name| name.contains(ENGINE) || is_wait_for_thread(name));
    // Calls of known libraries have rules of their own.
    let is_known = facts.inside(&facts.named(&facts.calls, super::is_of_another_rule));
    let is_pure = |id: &&EventId| {
        let around = facts.around(**id);
        !has_operator[id.index()]
            && !is_known[id.index()]
            && !waits[facts.profile.event(**id).name.index()]
            && !around.is_loading
            && !around.is_optimizer
            && !around.is_in_operator
    };
    let pure: Vec<EventId> = facts.calls.iter().filter(is_pure).copied().collect();
    let mut times: FxHashMap<StringId, u64> = FxHashMap::default();
    for &id in &pure {
        if let Some(frame) = facts.frames[id.index()] {
            *times.entry(frame).or_default() += facts.analysis.tree().self_time(id).0;
        }
    }
    let most = times.iter().max_by_key(|&(&frame, &time)| (time, frame));
    let Some((&frame, _)) = most else {
        return Outcome::Clean;
    };
    let is_of_frame = |id: &EventId| facts.frames[id.index()] == Some(frame);
    let events: Vec<EventId> = pure.into_iter().filter(is_of_frame).collect();
    let mut mending = Mending::default();
    mending.remove(events.iter().copied());
    Outcome::Found(Evidence {
        events,
        mending,
        blame: Some(Blame::Frame(frame)),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn counting(micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(20): step", |time| time.op("aten::mm", 1_000));
            time.python("train.py(30): count_words", micros);
        })
    }

    #[test]
    fn python_code_is_found() {
        let finding = found(counting(500), "python-bound");
        assert_eq!(blamed(&finding), "count_words");
        assert_saves(&finding, 0.33);
    }

    #[test]
    fn a_little_python_is_usual() {
        assert_eq!(outcome(counting(30), "python-bound"), "clean");
    }

    // The device works on the step while Python counts.
    #[test]
    fn python_beside_device_work_costs_nothing() {
        let profile = training(4, |time, _| {
            time.compute(4, 500);
            time.python("train.py(30): count_words", 1_000);
        });
        assert_eq!(outcome(profile, "python-bound"), "clean");
    }

    // The work is that of another thread.
    #[test]
    fn waiting_for_a_thread_is_no_python_code() {
        let profile = training(4, |time, _| {
            time.call("train.py(20): step", |time| {
                time.op("aten::mm", 500);
                time.call("threading.py(1115): join", |time| {
                    time.python(
                        "<built-in method acquire of _thread.lock object at 0x7f>",
                        900,
                    );
                });
            });
        });
        assert_eq!(outcome(profile, "python-bound"), "clean");
    }

    #[test]
    fn the_profilers_own_calls_are_no_python_code() {
        let profile = training(4, |time, _| {
            time.call("train.py(20): step", |time| {
                time.op("aten::mm", 500);
                time.python("torch/profiler/profiler.py(1443): step", 900);
            });
        });
        assert_eq!(outcome(profile, "python-bound"), "clean");
    }

    #[test]
    fn without_calls_nothing_can_be_told() {
        let profile = training(4, |time, _| time.op("aten::mm", 1_000));
        assert_eq!(outcome(profile, "python-bound"), "unknown");
    }
}
