//! Every step also runs the model without gradients.

use super::passes::{Pass, passes_of};
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "per-step-validation",
    cause: "every step also runs the model without gradients",
    remedy: "validate once per epoch, or compute the metrics from the outputs of the training pass: out.detach()",
    price: Price::replay(0.03, (0.4, 1.05)),
    check,
};

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("calls of modules were not recorded: with_stack=True");
    }
    let calls = passes_of(facts, Pass::WithoutGradients, true);
    if !facts.is_usual(&calls) {
        return Outcome::Clean;
    }
    let blamed = facts.blamed(calls.iter().map(|&id| (id, facts.duration(id))));
    Outcome::Found(Evidence {
        mending: facts.without(&calls),
        events: calls,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;
    use crate::advice::rules::passes::drawn::{forward, train};

    fn validating(every: u64, micros: u64) -> mindprof_model::Profile {
        training(6, |time, step| {
            train(time, step);
            if step % every == 0 {
                time.call("train.py(9): validate", |time| {
                    forward(time, "Net_0", None, micros);
                });
            }
        })
    }

    #[test]
    fn validation_in_each_step_is_found() {
        let finding = found(validating(1, 500), "per-step-validation");
        assert_eq!(blamed(&finding), "validate");
        assert_saves(&finding, 0.33);
    }

    #[test]
    fn short_validation_is_clean() {
        assert_eq!(outcome(validating(1, 10), "per-step-validation"), "clean");
    }

    #[test]
    fn validation_in_a_few_steps_is_clean() {
        assert_eq!(outcome(validating(5, 500), "per-step-validation"), "clean");
    }
}
