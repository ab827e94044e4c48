//! The device waits while batches are copied to it.

use mindprof_model::{Category, EventId};

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "input-transfer",
    cause: "the device waits while batches are copied to it",
    remedy: "copy the next batch on a torch.cuda.Stream() while this one is computed, or copy uint8 and convert on the device",
    price: Price::replay(0.03, (0.5, 1.1)),
    needs: &[EventKind::Device],
    check,
};

fn check(facts: &Facts<'_>) -> Outcome {
    // Copies of pageable memory have another remedy first.
    let is_copy = |name: &str| name.starts_with("Memcpy HtoD") && !name.contains("Pageable");
    let copies = facts.named(&facts.kernels, is_copy);
    if !facts.is_usual(&copies) {
        return Outcome::Clean;
    }
    let mut mending = Mending::default();
    mending.remove(copies.iter().copied());
    // The program need not wait for a copy of pinned memory.
    let operators = facts.outermost_operators(&copies);
    let inside = facts.all_inside(&operators).into_iter();
    let is_call = |id: &EventId| facts.profile.event(*id).category == Category::Runtime;
    for id in inside.filter(is_call) {
        mending.unblock(id);
    }
    Outcome::Found(Evidence {
        events: copies,
        mending,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const COPY: &str = "Memcpy HtoD (Pinned -> Device)";

    fn copying(micros: u64) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.call("train.py(4): fetch", |time| {
                time.copy("aten::copy_", COPY, micros, 1 << 24);
            });
            time.compute(10, 100);
        })
    }

    #[test]
    fn copies_that_the_device_waits_for_are_found() {
        let finding = found(copying(500), "input-transfer");
        assert_eq!(blamed(&finding), "fetch");
        assert_saves(&finding, 0.33);
    }

    #[test]
    fn a_small_batch_is_clean() {
        assert_eq!(outcome(copying(20), "input-transfer"), "clean");
    }

    // The copies are made on a stream of their own, while the device computes.
    #[test]
    fn copies_beside_kernels_are_clean() {
        let profile = training(5, |time, _| {
            time.operator("aten::copy_", |time| time.kernel_on(1, COPY, 500));
            time.compute(10, 100);
        });
        assert_eq!(outcome(profile, "input-transfer"), "clean");
    }
}
