//! The CPU waits for the device in the middle of a step.

use mindprof_model::{Category, EventId, Nanos};

use super::launch_blocking::waits_of_operators;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;
use crate::replay::{is_allocation_call, is_blocking_call};

pub(super) const RULE: Rule = Rule {
    id: "synchronization",
    cause: "the CPU waits for the device in the middle of a step",
    remedy: "keep results on the device and read them once: stack them, then one .item() or .tolist()",
    price: Price::replay(0.02, (0.5, 1.5)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// One wait per step, such as printing the loss, is usual.
const USUAL: f64 = 2.0;

fn check(facts: &Facts<'_>) -> Outcome {
    let is_wait = |name: &str| is_blocking_call(name) && !is_allocation_call(name);
    let mut waits = facts.named(&facts.runtime, is_wait);
    waits.retain(|&id| !facts.around(id).is_loading);
    // Those of an NPU's operators that all wait have a rule of their own. They are in time order.
    let of_operators = waits_of_operators(facts);
    waits.retain(|id| of_operators.binary_search(id).is_err());
    if facts.per_step(waits.len()) <= USUAL {
        return Outcome::Clean;
    }
    let is_of_device = |&at: &EventId| {
        let category = facts.profile.event(at).category;
        matches!(category, Category::Operator | Category::Runtime)
    };
    // The outermost operator around a wait, such as `item`, becomes one of many.
    let outermost = |&id: &EventId| {
        let around = std::iter::successors(Some(id), |&at| facts.parent(at));
        around.take_while(is_of_device).last()
    };
    let reading: Vec<EventId> = waits.iter().filter_map(outermost).collect();
    let mut mending = Mending::default();
    for id in facts.all_inside(&reading) {
        mending.unblock(id);
        mending.scale(id, 0.0);
    }
    let blamed = facts.blamed(waits.iter().map(|&id| (id, Nanos(1))));
    Outcome::Found(Evidence {
        events: waits,
        mending,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn reading(items: usize) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(9): norms", |time| {
                for _ in 0..items {
                    time.compute(1, 100);
                    time.item();
                }
            });
            time.compute(10, 100);
        })
    }

    #[test]
    fn waits_in_the_middle_of_a_step_are_found() {
        let finding = found(reading(20), "synchronization");
        assert_eq!(blamed(&finding), "norms");
        assert!((0.1..0.7).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn one_item_per_step_is_usual() {
        assert_eq!(outcome(reading(1), "synchronization"), "clean");
    }

    // Waits that find the device idle take no time from the step.
    #[test]
    fn waits_for_nothing_are_clean() {
        let profile = training(4, |time, _| {
            for _ in 0..4 {
                time.op("aten::mm", 2_000);
                time.synchronize();
            }
            time.compute(1, 10);
        });
        assert_eq!(outcome(profile, "synchronization"), "clean");
    }
}
