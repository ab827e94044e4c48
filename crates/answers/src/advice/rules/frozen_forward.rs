//! Every step runs a model that is not trained.

use mindprof_model::EventId;

use super::passes::{Pass, check_passes, passes_of};
use crate::advice::Confidence;
use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "frozen-forward",
    cause: "every step runs a model that is not trained",
    remedy: "if its inputs come again in each epoch, compute its outputs once and store them: torch.save(features)",
    price: Price::replay(0.05, (0.2, 1.0)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

fn check(facts: &Facts<'_>) -> Outcome {
    if is_teacher(facts) {
        return Outcome::Clean;
    }
    let mut outcome = check_passes(facts, Pass::WithoutGradients, false);
    // The recording does not tell whether inputs come again.
    if let Outcome::Found(evidence) = &mut outcome {
        evidence.confidence = Some(Confidence::Low);
    }
    outcome
}

/// Returns whether the model takes the same inputs as one that is trained, as the teacher of a
/// distillation and the target network of Q-learning do, and no data loader makes these inputs: they
/// change with every step. The samples of a data loader come again in each epoch. The outputs of a
/// frozen encoder are the inputs of the trained model.
fn is_teacher(facts: &Facts<'_>) -> bool {
    if facts.ranges.iter().any(|&id| facts.around(id).is_loading) {
        return false;
    }
    let first_input = |id: EventId| {
        let inside = |at: EventId| std::iter::successors(Some(at), |&at| facts.parent(at));
        let after = facts.operators.partition_point(|&operator| operator < id);
        let mut operators = facts.operators[after..].iter().copied();
        let first = operators.find(|&operator| {
            !facts.tensors(operator).is_empty() || !inside(operator).any(|at| at == id)
        })?;
        let is_inside = inside(first).any(|at| at == id);
        let tensors = facts.tensors(first);
        let (_, sizes) = tensors.first().filter(|_| is_inside)?;
        Some(*sizes)
    };
    let frozen = passes_of(facts, Pass::WithoutGradients, false);
    let trained = passes_of(facts, Pass::Trained, true);
    let input = |passes: &[EventId]| passes.first().and_then(|&id| first_input(id));
    input(&frozen).is_some_and(|sizes| Some(sizes) == input(&trained))
}

#[cfg(test)]
mod tests {
    use mindprof_model::DType;

    use crate::advice::Confidence;
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
        assert_eq!(finding.confidence, Confidence::Low);
    }

    #[test]
    fn a_small_encoder_is_clean() {
        assert_eq!(outcome(encoding(20), "frozen-forward"), "clean");
    }

    /// Draws a distillation whose samples come from a data loader. Both models are of one class.
    fn distilling(has_numbers: bool, width: usize, micros: u64) -> mindprof_model::Profile {
        training(6, |time, step| {
            let number = step as u32 * 10 + 1;
            let next = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
            time.range(next, |time| time.idle(1));
            time.call("train.py(26): soft_targets", |time| {
                time.call("nn.Module: Sequential", |time| {
                    if has_numbers {
                        time.number(number);
                    }
                    time.takes(DType::F32, &[&[64, 128], &[width, 128]]);
                    time.op("aten::linear", micros);
                });
            });
            time.call("train.py(30): step", |time| {
                time.call("nn.Module: Sequential", |time| {
                    time.number(number);
                    time.takes(DType::F32, &[&[64, 128], &[256, 128]]);
                    time.op("aten::linear", 500);
                });
            });
            time.number(number);
            time.operator(
                "autograd::engine::evaluate_function: AddmmBackward0",
                |time| {
                    time.node("AddmmBackward0", number, |time| time.idle(500));
                },
            );
        })
    }

    // The teacher's operators have the number of the node that the student creates, or none under
    // no_grad.
    #[test]
    fn a_teacher_whose_samples_come_again_is_found() {
        for has_numbers in [true, false] {
            let finding = found(distilling(has_numbers, 1_280, 500), "frozen-forward");
            assert_eq!(blamed(&finding), "soft_targets");
            assert_saves(&finding, 0.33);
            assert_eq!(
                outcome(distilling(has_numbers, 1_280, 20), "frozen-forward"),
                "clean"
            );
        }
    }

    // A model that is trained as well is not frozen.
    #[test]
    fn a_model_of_the_same_sizes_is_not_frozen() {
        assert_eq!(
            outcome(distilling(false, 256, 500), "frozen-forward"),
            "clean"
        );
    }

    // A teacher and a student see the same inputs, which no data loader makes.
    #[test]
    fn a_teacher_is_clean() {
        let draw = |sizes: &'static [usize]| {
            training(6, move |time, step| {
                time.call("nn.Module: Teacher_0", |time| {
                    time.takes(DType::F32, &[&[64, 512], &[512, 512]]);
                    time.op("aten::mm", 500);
                });
                let number = step as u32 * 10 + 1;
                time.call("nn.Module: Student_0", |time| {
                    time.number(number);
                    time.takes(DType::F32, &[sizes, &[512, 512]]);
                    time.op("aten::mm", 500);
                });
                time.node("MmBackward0", number, |time| time.idle(500));
            })
        };
        assert_eq!(outcome(draw(&[64, 512]), "frozen-forward"), "clean");
        assert_eq!(outcome(draw(&[64, 128]), "frozen-forward"), "found");
    }

    // A program that only runs a model is not training.
    #[test]
    fn inference_is_clean() {
        let profile = training(6, |time, _| forward(time, "Net_0", None, 500));
        assert_eq!(outcome(profile, "frozen-forward"), "clean");
    }
}
