//! The engine checks each gradient for NaN.

use mindprof_model::{EventId, Place, is_backward_wrapper};

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "anomaly-detection",
    cause: "the backward pass checks every gradient for NaN",
    remedy: "remove torch.autograd.set_detect_anomaly(True), and use it only to search for a NaN",
    price: Price::replay(0.02, (0.8, 1.8)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

/// Fewer checks in a step are those of the program itself.
const MANY: f64 = 5.0;

/// The operators of a check.
const CHECKS: [&str; 5] = [
    "aten::isnan",
    "aten::_is_any_true",
    "aten::any",
    "aten::is_nonzero",
    "aten::item",
];

fn check(facts: &Facts<'_>) -> Outcome {
    let is_wrapper = facts.names(is_backward_wrapper);
    let is_of_engine = |id: EventId| {
        (facts.parent(id))
            .is_some_and(|parent| is_wrapper[facts.profile.event(parent).name.index()])
    };
    let mut checks = facts.named(&facts.operators, |name| CHECKS.contains(&name));
    checks.retain(|&id| is_of_engine(id));
    let tests = facts.named(&checks, |name| name == "aten::isnan").len();
    if facts.per_step(tests) < MANY {
        return Outcome::Clean;
    }
    // Forward operators note where they were called.
    let mut notes = facts.named(&facts.calls, is_note);
    notes.retain(|&id| facts.around(id).is_in_operator);
    checks.extend(facts.outermost(&notes));
    checks.sort_unstable();
    Outcome::Found(Evidence {
        mending: facts.without(&checks),
        events: checks,
        blame: Some(Blame::Nobody),
        ..Evidence::default()
    })
}

/// Returns whether a call formats the stack, as for each operator whose gradients are checked.
fn is_note(name: &str) -> bool {
    Place::parse(name).is_some_and(|place| {
        place.file.ends_with("traceback.py") && place.function == "format_stack"
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const ENGINE: &str = "autograd::engine::evaluate_function: MmBackward0";

    fn checking(nodes: usize, check: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.operator("aten::mm", |time| {
                time.python("torch/fx/traceback.py(500): format_stack", 20 * check);
            });
            for _ in 0..nodes {
                time.operator(ENGINE, |time| {
                    time.op("MmBackward0", 100);
                    time.op("aten::isnan", check);
                    time.op("aten::_is_any_true", check);
                });
            }
        })
    }

    #[test]
    fn checks_after_every_node_are_found() {
        assert_saves(&found(checking(20, 50), "anomaly-detection"), 0.6);
    }

    #[test]
    fn a_few_checks_are_clean() {
        assert_eq!(outcome(checking(3, 50), "anomaly-detection"), "clean");
    }

    // A program that looks at its own losses does so outside of the engine.
    #[test]
    fn checks_of_the_program_are_clean() {
        let profile = training(4, |time, _| {
            for _ in 0..20 {
                time.op("aten::mm", 100);
                time.op("aten::isnan", 50);
            }
        });
        assert_eq!(outcome(profile, "anomaly-detection"), "clean");
    }
}
