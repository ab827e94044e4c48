//! Every step runs a model that is not trained.

use super::passes::{Pass, passes_of};
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "frozen-forward",
    cause: "every step runs a model that is not trained",
    remedy: "if its inputs come again in each epoch, compute its outputs once and store them: torch.save(features)",
    price: Price::replay(0.05, (0.2, 1.0)),
    check,
};

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("calls of modules were not recorded: with_stack=True");
    }
    let calls = passes_of(facts, Pass::WithoutGradients, false);
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

    fn encoding(micros: u64) -> mindprof_model::Profile {
        training(6, |time, step| {
            time.call("train.py(9): encode", |time| {
                forward(time, "Encoder_0", None, micros);
            });
            train(time, step);
        })
    }

    #[test]
    fn a_frozen_encoder_is_found() {
        let finding = found(encoding(500), "frozen-forward");
        assert_eq!(blamed(&finding), "encode");
        assert_saves(&finding, 0.33);
    }

    #[test]
    fn a_small_encoder_is_clean() {
        assert_eq!(outcome(encoding(20), "frozen-forward"), "clean");
    }

    // A program that only runs a model is not training.
    #[test]
    fn inference_is_clean() {
        let profile = training(6, |time, _| forward(time, "Net_0", None, 500));
        assert_eq!(outcome(profile, "frozen-forward"), "clean");
    }
}
