//! The optimizer updates parameters one by one.

use mindprof_model::{Category, EventId, Nanos};

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "optimizer-loop",
    cause: "the optimizer updates parameters one by one",
    remedy: "update all parameters at once: fused=True (or foreach=True) in the optimizer",
    price: Price::replay(0.02, (0.6, 1.2)),
    check,
};

/// A fused optimizer runs a few operators; this many are a loop over parameters.
const MANY: f64 = 40.0;

/// The time of the Python code and of the kernels of a fused step, compared with the loop.
const FUSED_HOST: f32 = 0.08;
const FUSED_DEVICE: f32 = 0.3;

/// The CPU time of an operator apart from its work: this much of its time is saved.
const DISPATCH: Nanos = Nanos(4_000);
const DISPATCH_AND_LAUNCH: Nanos = Nanos(25_000);

fn check(facts: &Facts<'_>) -> Outcome {
    let is_of_optimizer = |id: &&EventId| facts.around(**id).is_optimizer;
    let inside = facts.events.iter().filter(is_of_optimizer).copied();
    let inside: Vec<EventId> = inside.collect();
    let is_operator = |id: &&EventId| {
        facts.profile.event(**id).category == Category::Operator
            && !facts.around(**id).is_in_operator
    };
    let operators: Vec<EventId> = inside.iter().filter(is_operator).copied().collect();
    let is_grouped = |name: &str| name.contains("_foreach_") || name.contains("_fused_");
    let grouped = facts.named(&operators, is_grouped).len();
    let single = operators.len() - grouped;
    if facts.per_step(single) < MANY || grouped * 10 > single {
        return Outcome::Clean;
    }
    let dispatch = if facts.has_device {
        DISPATCH_AND_LAUNCH
    } else {
        DISPATCH
    };
    // By event, the factor of the operator around it. Parents precede their children.
    let mut factors = vec![FUSED_HOST; facts.profile.events().len()];
    let mut mending = Mending::default();
    for &id in &inside {
        let duration = facts.duration(id);
        let factor = if facts.is_kernel(id) {
            FUSED_DEVICE
        } else if is_operator(&&id) {
            let work = duration.saturating_sub(dispatch);
            FUSED_HOST.max(work.0 as f32 / duration.0.max(1) as f32)
        } else if facts.around(id).is_in_operator {
            let parent = facts.parent(id);
            parent.map_or(FUSED_HOST, |parent| factors[parent.index()])
        } else {
            FUSED_HOST
        };
        factors[id.index()] = factor;
        mending.scale(id, factor);
    }
    Outcome::Found(Evidence {
        events: operators,
        mending,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn updating(parameters: u64, operator: &str) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.op("aten::mm", 500);
            time.call("train.py(20): step", |time| {
                time.range("Optimizer.step#Adam.step", |time| {
                    for _ in 0..parameters {
                        for _ in 0..4 {
                            time.op(operator, 5);
                        }
                    }
                });
            });
        })
    }

    #[test]
    fn a_loop_over_many_parameters_is_found() {
        let finding = found(updating(60, "aten::mul_"), "optimizer-loop");
        assert_eq!(blamed(&finding), "step");
        assert!((0.35..0.75).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn a_loop_over_five_parameters_is_clean() {
        assert_eq!(
            outcome(updating(5, "aten::mul_"), "optimizer-loop"),
            "clean"
        );
    }

    #[test]
    fn operators_on_all_parameters_are_clean() {
        let profile = updating(60, "aten::_foreach_mul_");
        assert_eq!(outcome(profile, "optimizer-loop"), "clean");
    }
}
