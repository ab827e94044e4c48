//! The model runs more often than its gradients are computed.

use super::passes::{Pass, check_passes};
use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "repeated-work",
    cause: "the model runs with gradients enabled, and no backward pass uses it",
    remedy: "run it once and keep the output: out = model(x), then the loss and the metrics from out.detach()",
    price: Price::replay(0.03, (0.6, 1.1)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

fn check(facts: &Facts<'_>) -> Outcome {
    check_passes(facts, Pass::Unused, true)
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;
    use crate::advice::rules::passes::drawn::{forward, train};

    fn twice(micros: u64) -> mindprof_model::Profile {
        training(6, |time, step| {
            train(time, step);
            time.call("train.py(9): accuracy", |time| {
                forward(time, "Net_0", Some(step as u32 * 10 + 5), micros);
            });
        })
    }

    #[test]
    fn a_second_forward_pass_is_found() {
        let finding = found(twice(500), "repeated-work");
        assert_eq!(blamed(&finding), "accuracy");
        assert_saves(&finding, 0.33);
    }

    #[test]
    fn a_short_pass_is_clean() {
        assert_eq!(outcome(twice(20), "repeated-work"), "clean");
    }

    // The forward pass runs again inside of the backward pass.
    #[test]
    fn checkpointing_is_clean() {
        let profile = training(6, |time, step| {
            let number = step as u32 * 10 + 1;
            forward(time, "Net_0", Some(number), 500);
            time.call(
                "<built-in method run_backward of torch._C._EngineBase object at 0x7f>",
                |time| {
                    time.node("MmBackward0", number, |time| {
                        forward(time, "Net_0", Some(number + 5), 500);
                        time.idle(500);
                    });
                },
            );
        });
        assert_eq!(outcome(profile, "repeated-work"), "clean");
    }

    // Gradients are accumulated over two passes, each with its backward pass.
    #[test]
    fn accumulated_gradients_are_clean() {
        let profile = training(6, |time, step| {
            train(time, step * 2);
            train(time, step * 2 + 1);
        });
        assert_eq!(outcome(profile, "repeated-work"), "clean");
    }
}
