//! Results are copied to the CPU in every step.

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "heavy-copies",
    cause: "tensors are copied to the CPU in every step",
    remedy: "reduce on the device and copy the result, or copy with .to(\"cpu\", non_blocking=True) and read it a step later",
    price: Price::replay(0.03, (0.6, 1.3)),
    needs: &[EventKind::Device],
    check,
};

fn check(facts: &Facts<'_>) -> Outcome {
    let copies = facts.named(&facts.kernels, |name| name.starts_with("Memcpy DtoH"));
    // Reading a number is a wait rather than a copy.
    let is_number = facts.names(|name| matches!(name, "aten::item" | "aten::_local_scalar_dense"));
    let mut operators = facts.outermost_operators(&copies);
    operators.retain(|&id| !is_number[facts.profile.event(id).name.index()]);
    // What a few steps copy makes them slow steps.
    if !facts.is_usual(&operators) {
        return Outcome::Clean;
    }
    let bytes = copies.iter().filter_map(|&id| facts.argument(id, "bytes"));
    let bytes = facts.per_step(1) * bytes.sum::<f64>();
    let blamed = facts.blamed(operators.iter().map(|&id| (id, facts.duration(id))));
    Outcome::Found(Evidence {
        mending: facts.without(&operators),
        events: operators,
        blame: blamed.map(Blame::Frame),
        bytes: (bytes > 0.0).then_some(bytes as u64),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const COPY: &str = "Memcpy DtoH (Device -> Pageable)";

    fn copying(micros: u64) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.compute(10, 100);
            time.call("train.py(4): keep_outputs", |time| {
                time.copy("aten::to", COPY, micros, 1 << 20);
            });
        })
    }

    #[test]
    fn results_that_are_copied_are_found() {
        let finding = found(copying(500), "heavy-copies");
        assert_eq!(blamed(&finding), "keep_outputs");
        assert_eq!(finding.bytes, Some(1 << 20));
        assert!((0.3..0.5).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn a_quick_copy_is_clean() {
        assert_eq!(outcome(copying(2), "heavy-copies"), "clean");
    }

    #[test]
    fn reading_a_number_is_another_cause() {
        let profile = training(5, |time, _| {
            time.compute(10, 100);
            time.item();
        });
        assert_eq!(outcome(profile, "heavy-copies"), "clean");
    }
}
