//! Every step also runs the model without gradients.

use mindprof_model::EventId;

use super::passes::{Pass, check_passes};
use crate::advice::Confidence;
use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "per-step-validation",
    cause: "every step also runs the model without gradients",
    remedy: "validate once per epoch, or compute the metrics from the outputs of the training pass: out.detach()",
    price: Price::replay(0.03, (0.4, 1.05)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

/// Parts of the names of functions that measure how good a model is.
const MEASURING: [&str; 5] = ["valid", "eval", "test", "metric", "accura"];

/// The change to try if nothing says that the model is measured. Programs also run a model without
/// gradients to choose an action or to make targets, which no change saves.
const IF_MEASURING: &str = "if it only measures the model, once per epoch, or from the outputs of the training pass: out.detach()";

fn check(facts: &Facts<'_>) -> Outcome {
    let mut outcome = check_passes(facts, Pass::WithoutGradients, true);
    if let Outcome::Found(evidence) = &mut outcome
        && !is_measuring(facts, &evidence.events)
    {
        evidence.remedy = Some(IF_MEASURING);
        evidence.confidence = Some(Confidence::Low);
        evidence.is_hint = true;
    }
    outcome
}

/// Returns whether the program switches the model to evaluation, or a function that calls it has a
/// name that says so.
fn is_measuring(facts: &Facts<'_>, calls: &[EventId]) -> bool {
    let switches = |name: &str| name.contains("nn/modules/module.py(") && name.ends_with(": eval");
    let says_so = facts.names(|name| {
        let place = facts.own.place(name);
        place.is_some_and(|place| {
            let function = place.function.to_ascii_lowercase();
            MEASURING.iter().any(|part| function.contains(part))
        })
    });
    let says_so = |id: EventId| says_so[facts.profile.event(id).name.index()];
    let mut callers = std::iter::successors(calls.first().copied(), |&at| facts.parent(at));
    callers.any(says_so) || facts.is_usual(&facts.named(&facts.calls, switches))
}

#[cfg(test)]
mod tests {
    use crate::advice::Confidence;
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

    // A policy that chooses the next action.
    #[test]
    fn a_pass_that_may_have_another_purpose_is_a_hint() {
        let profile = training(6, |time, step| {
            time.call("train.py(9): act", |time| forward(time, "Net_0", None, 500));
            train(time, step);
        });
        let finding = found(profile, "per-step-validation");
        assert_eq!(finding.confidence, Confidence::Low);
        assert!(finding.share < 0.001, "{}", finding.share);
        assert!(finding.remedy.starts_with("if it only measures"));
        let finding = found(validating(1, 500), "per-step-validation");
        assert_eq!(finding.confidence, Confidence::Medium);
    }

    // A GAN trains its discriminator on the images of its generator.
    #[test]
    fn a_generator_without_gradients_is_clean() {
        let profile = training(6, |time, step| {
            let number = step as u32 * 30;
            forward(time, "Generator_0", None, 500);
            for (model, number) in [
                ("Discriminator_0", number + 1),
                ("Generator_0", number + 2),
                ("Discriminator_0", number + 3),
            ] {
                forward(time, model, Some(number), 500);
                time.node("MmBackward0", number, |time| time.idle(500));
            }
        });
        assert_eq!(outcome(profile, "per-step-validation"), "clean");
    }

    // The first pass of reentrant checkpointing has no gradients, and the second is trained.
    #[test]
    fn reentrant_checkpointing_is_clean() {
        let profile = training(6, |time, step| {
            let number = step as u32 * 10 + 1;
            time.call("torch/utils/checkpoint.py(250): forward", |time| {
                forward(time, "Net_0", None, 500);
            });
            time.node("CheckpointFunctionBackward", number + 5, |time| {
                forward(time, "Net_0", Some(number), 500);
                time.node("MmBackward0", number, |time| time.idle(500));
            });
        });
        assert_eq!(outcome(profile, "per-step-validation"), "clean");
    }

    // The whole model is computed again in its backward pass. No operator beside that shows whether
    // the pass is trained.
    #[test]
    fn a_model_that_is_checkpointed_as_a_whole_is_clean() {
        let profile = training(6, |time, step| {
            let number = step as u32 * 10 + 1;
            let checkpointed = |time: &mut Drawing| {
                time.call("torch/utils/checkpoint.py(606): checkpoint", |time| {
                    time.number(number);
                    time.op("aten::mm", 500);
                });
            };
            train(time, step + 100);
            time.call("train.py(9): step", |time| {
                time.call("nn.Module: Net_0", checkpointed);
                time.node("MmBackward0", number, |time| time.idle(500));
            });
        });
        assert_eq!(outcome(profile, "per-step-validation"), "clean");
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
