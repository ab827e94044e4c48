//! A loop runs small operators one by one.

use super::loops::{Loop, found, loops, of_one_function};
use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "operator-loop",
    cause: "a loop runs small operators one by one",
    remedy: "compute with whole tensors instead of a loop: torch.stack, masks and index tensors, or torch._foreach_* for lists",
    price: Price::replay(0.04, (0.4, 1.2)),
    needs: &[EventKind::Cpu],
    check,
};

/// Parts of the names of matrix products. Loops over layers and over time have them, and each round of
/// those needs the one before.
const PRODUCTS: [&str; 6] = ["mm", "linear", "matmul", "conv", "lstm", "gru"];

fn check(facts: &Facts<'_>) -> Outcome {
    // On a device, such a loop is slow because of its launches.
    if facts.has_device {
        return Outcome::Clean;
    }
    let is_product = facts.names(|name| PRODUCTS.iter().any(|part| name.contains(part)));
    let has_products = |found: &Loop| {
        let mut names = found
            .operators
            .iter()
            .map(|&id| facts.profile.event(id).name);
        names.any(|name| is_product[name.index()])
    };
    let meant = loops(facts).iter().filter(|found| {
        found.function.is_some() && !found.is_reading(facts) && !has_products(found)
    });
    match of_one_function(meant, |found| found.operators.len()) {
        Some((_, loops)) => found(facts, &loops),
        None => Outcome::Clean,
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn normalizing(rounds: usize, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.op("aten::mm", 1_000);
            time.call("train.py(9): clip", |time| {
                for _ in 0..rounds {
                    time.op("aten::linalg_vector_norm", micros);
                    time.idle(2);
                    time.op("aten::mul_", micros);
                    time.idle(2);
                }
            });
        })
    }

    #[test]
    fn a_loop_of_small_operators_is_found() {
        let finding = found(normalizing(50, 8), "operator-loop");
        assert_eq!(blamed(&finding), "clip");
        assert_saves(&finding, 0.49);
    }

    // The time of a program without steps is told apart from its imports.
    #[test]
    fn imports_are_no_part_of_a_program_without_steps() {
        let profile = program(|time| {
            time.range("import torch", |time| time.idle(5_000));
            time.op("aten::mm", 1_000);
            time.call("train.py(9): clip", |time| {
                for _ in 0..100 {
                    time.op("aten::mul_", 10);
                }
            });
        });
        assert_saves(&found(profile, "operator-loop"), 0.49);
    }

    // A helper of the user's is called once in each round.
    #[test]
    fn calls_within_the_loop_belong_to_it() {
        let profile = training(4, |time, _| {
            time.op("aten::mm", 1_000);
            time.call("train.py(9): clip", |time| {
                for _ in 0..50 {
                    time.call("train.py(4): scaled", |time| {
                        time.idle(10);
                        time.op("aten::mul_", 10);
                    });
                }
            });
        });
        let finding = found(profile, "operator-loop");
        assert_eq!(blamed(&finding), "scaled");
        assert_saves(&finding, 0.49);
    }

    // `torch.stack([table[i] for i in chosen])` is `table[chosen]`, which needs no list.
    #[test]
    fn the_list_of_a_comprehension_is_not_put_together_any_more() {
        let sampling = |then: &'static str| {
            training(4, move |time, _| {
                time.op("aten::mm", 1_000);
                time.call("train.py(9): sample", |time| {
                    time.call("train.py(9): <listcomp>", |time| {
                        for _ in 0..50 {
                            time.op("aten::select", 10);
                        }
                    });
                    time.op(then, 500);
                });
            })
        };
        assert_saves(&found(sampling("aten::stack"), "operator-loop"), 0.49);
        assert_saves(&found(sampling("aten::sort"), "operator-loop"), 0.245);
    }

    // Both lists, and the code between the operators of each, belong to the loop.
    #[test]
    fn the_code_of_each_comprehension_is_saved() {
        let profile = training(4, |time, _| {
            time.op("aten::mm", 1_000);
            time.call("train.py(9): sample", |time| {
                for _ in 0..2 {
                    time.call("train.py(9): <listcomp>", |time| {
                        for _ in 0..50 {
                            time.op("aten::select", 5);
                            time.idle(5);
                        }
                    });
                    time.idle(40);
                    time.op("aten::stack", 40);
                }
            });
        });
        assert_saves(&found(profile, "operator-loop"), 0.53);
    }

    #[test]
    fn a_few_rounds_are_clean() {
        assert_eq!(outcome(normalizing(15, 30), "operator-loop"), "clean");
    }

    // The operators do work, which whole tensors have to do as well.
    #[test]
    fn large_operators_are_clean() {
        assert_eq!(outcome(normalizing(50, 200), "operator-loop"), "clean");
    }

    // What the loop waits for between its operators is something else.
    #[test]
    fn waits_within_the_loop_are_not_saved() {
        let profile = training(4, |time, _| {
            time.call("train.py(9): poll", |time| {
                for _ in 0..50 {
                    time.op("aten::add", 10);
                    time.idle(2_000);
                }
            });
        });
        assert_eq!(outcome(profile, "operator-loop"), "clean");
    }

    // A model of many layers calls the same few operators again and again, on purpose.
    #[test]
    fn layers_of_a_model_are_clean() {
        let profile = training(4, |time, _| {
            time.call("train.py(30): forward", |time| {
                for layer in 0..60 {
                    time.call(&format!("nn.Module: Linear_{layer}"), |time| {
                        time.op("aten::linear", 10);
                    });
                }
            });
        });
        assert_eq!(outcome(profile, "operator-loop"), "clean");
    }

    // Each round needs the result of the one before.
    #[test]
    fn a_loop_over_time_is_clean() {
        let profile = training(4, |time, _| {
            time.call("train.py(30): forward", |time| {
                for _ in 0..100 {
                    time.op("aten::matmul", 10);
                    time.op("aten::tanh", 10);
                }
            });
        });
        assert_eq!(outcome(profile, "operator-loop"), "clean");
    }

    #[test]
    fn launches_on_a_device_are_another_cause() {
        let profile = training(4, |time, _| {
            time.call("train.py(30): forward", |time| time.compute(100, 5));
        });
        assert_ne!(outcome(profile, "operator-loop"), "found");
    }

    // Forty different lines are no loop.
    #[test]
    fn many_lines_are_clean() {
        let profile = training(4, |time, _| {
            time.call("train.py(30): loss", |time| {
                for line in 0..40 {
                    time.op(&format!("aten::op_{line}"), 10);
                }
            });
        });
        assert_eq!(outcome(profile, "operator-loop"), "clean");
    }
}
