//! Gradients are filled with zeros instead of being dropped.

use mindprof_model::EventId;

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "zeroed-gradients",
    cause: "gradients are filled with zeros instead of being dropped",
    remedy: "optimizer.zero_grad(set_to_none=True)",
    price: Price::replay(0.005, (0.7, 1.5)),
    needs: &[EventKind::Cpu],
    check,
};

/// The ranges in which an optimizer resets gradients.
const RESET: &str = "Optimizer.zero_grad#";

fn check(facts: &Facts<'_>) -> Outcome {
    let resets = facts.named(&facts.ranges, |name| name.starts_with(RESET));
    if resets.is_empty() {
        return Outcome::Clean;
    }
    let is_reset = facts.inside(&resets);
    let is_fill = |name: &str| matches!(name, "aten::zero_" | "aten::_foreach_zero_");
    let fills = facts.named(&facts.operators, is_fill);
    let inside: Vec<EventId> = (fills.into_iter())
        .filter(|id| is_reset[id.index()])
        .collect();
    let fills = facts.outermost(&inside);
    if fills.is_empty() {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        mending: facts.without(&fills),
        events: fills,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn resetting(range: &str, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(9): step", |time| {
                time.range(range, |time| {
                    for _ in 0..10 {
                        time.op("aten::zero_", micros);
                    }
                });
                time.op("aten::mm", 1_000);
            });
        })
    }

    #[test]
    fn gradients_that_are_filled_are_found() {
        let finding = found(
            resetting("Optimizer.zero_grad#SGD.zero_grad", 20),
            "zeroed-gradients",
        );
        assert_eq!(blamed(&finding), "step");
        assert_saves(&finding, 0.16);
    }

    #[test]
    fn small_gradients_are_clean() {
        let profile = resetting("Optimizer.zero_grad#SGD.zero_grad", 1);
        assert_eq!(outcome(profile, "zeroed-gradients"), "clean");
    }

    #[test]
    fn other_tensors_that_are_filled_are_clean() {
        assert_eq!(
            outcome(resetting("forward", 20), "zeroed-gradients"),
            "clean"
        );
    }
}
