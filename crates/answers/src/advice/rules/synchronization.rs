//! The CPU waits for the device in the middle of a step.
//!
//! A loop that reads numbers one by one often computes them one by one as well, such as the norms of
//! gradients. Once they are read together, they are computed together too.

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
    // The device still has to compute what is read.
    let computing = computed_one_by_one(facts, &reading);
    for id in facts.all_inside(&computing) {
        if !facts.is_kernel(id) {
            mending.scale(id, 0.0);
        }
    }
    let blamed = facts.blamed(waits.iter().map(|&id| (id, Nanos(1))));
    Outcome::Found(Evidence {
        events: waits,
        mending,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

/// Operators that make one number of a tensor, or that come right before one that does.
const REDUCING: [&str; 20] = [
    "aten::abs",
    "aten::all",
    "aten::amax",
    "aten::amin",
    "aten::any",
    "aten::detach",
    "aten::isfinite",
    "aten::isinf",
    "aten::isnan",
    "aten::linalg_vector_norm",
    "aten::max",
    "aten::mean",
    "aten::min",
    "aten::norm",
    "aten::pow",
    "aten::sqrt",
    "aten::square",
    "aten::std",
    "aten::sum",
    "aten::var",
];

/// Returns the calls that compute what is read, if nothing else happens between two readings of one
/// function. Anything else, such as the passes of small batches, has to be done one by one.
///
/// ```text
/// CPU   |norm|item|norm|item|norm|item|     one by one
/// CPU   |mm|mean|item|mm|mean|item|         each number belongs to other work
/// ```
fn computed_one_by_one(facts: &Facts<'_>, reading: &[EventId]) -> Vec<EventId> {
    let Some(&first) = reading.first() else {
        return Vec::new();
    };
    let thread = facts.profile.event(first).thread;
    let is_reducing = facts.names(|name| REDUCING.contains(&name));
    let mut is_reading = vec![false; facts.profile.events().len()];
    for id in reading {
        is_reading[id.index()] = true;
    }
    let mut found = Vec::new();
    let mut between: Vec<EventId> = Vec::new();
    // The function that read last, as long as only reductions followed.
    let mut reader = None;
    for id in facts.outer_operators() {
        let event = facts.profile.event(id);
        if event.thread != thread {
            continue;
        }
        let function = facts.function(id);
        if is_reading[id.index()] {
            if reader == Some(function) {
                found.append(&mut between);
            }
            between.clear();
            reader = Some(function);
        } else if is_reducing[event.name.index()] && reader == Some(function) {
            between.push(id);
        } else {
            between.clear();
            reader = None;
        }
    }
    // The framework's functions around an operator are called once for each, too.
    let library_call = |id: EventId| {
        let around = std::iter::successors(Some(id), |&at| facts.parent(at));
        let is_of_library = |at: &EventId| {
            let category = facts.profile.event(*at).category;
            *at == id || category == Category::PythonFunction && !facts.is_own_call(*at)
        };
        around.take_while(is_of_library).last().unwrap_or(id)
    };
    let mut calls: Vec<EventId> = found.into_iter().map(library_call).collect();
    calls.dedup();
    calls
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

    /// Reads a number after each of some operators.
    fn reading_after(operator: &'static str) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(9): norms", |time| {
                for _ in 0..20 {
                    time.call("torch/_tensor.py(896): norm", |time| {
                        time.idle(70);
                        time.launch(operator, "reduce", 2);
                    });
                    time.item();
                }
            });
            time.synchronize();
            time.compute(10, 100);
        })
    }

    // Each norm takes 100 us on the CPU, and 19 of the 20 follow a reading.
    #[test]
    fn numbers_that_are_computed_to_be_read_are_computed_at_once() {
        let price = |operator| found(reading_after(operator), "synchronization").share;
        let norms = price("aten::linalg_vector_norm");
        let passes = price("aten::mm");
        assert!(norms > 0.5, "{norms}");
        assert!(passes < 0.6 * norms, "{passes} of {norms}");
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
