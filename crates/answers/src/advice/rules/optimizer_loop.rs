//! The optimizer updates parameters one by one.

use mindprof_model::{Category, EventId, Nanos};

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "optimizer-loop",
    cause: "the optimizer updates parameters one by one",
    remedy: "update all parameters at once: fused=True (or foreach=True) in the optimizer",
    price: Price::replay(0.02, (0.6, 2.0)),
    needs: &[EventKind::Cpu],
    check,
};

/// A fused optimizer runs a few operators; this many are a loop over parameters.
const MANY: f64 = 40.0;

/// The time of the Python code and of the kernels of a fused step, compared with the loop.
const FUSED_HOST: f32 = 0.08;
const FUSED_DEVICE: f32 = 0.3;

/// The optimizers that have a fused step. Their names end the names of ranges.
const WITH_FUSED: [&str; 4] = ["Adam.step", "AdamW.step", "SGD.step", "Adagrad.step"];

/// On the CPU, `foreach=True` is a loop of the same operators.
const ON_CPU: &str = "update all parameters at once: fused=True in the optimizer (foreach=True saves nothing on the CPU)";

/// The change to try for an optimizer without a fused step.
const WITHOUT_FUSED: &str = "update all parameters at once: foreach=True in the optimizer, or torch._foreach_add_ and its like in one of your own";

/// A fused step reads and writes each tensor once, where the loop does so for each of its operators.
/// The work that is left of a loop with several kinds of operators, as adaptive optimizers have:
/// measured steps keep from a quarter to all of it.
const FUSED_WORK: f32 = 0.67;
const SEVERAL: usize = 4;

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
    let steps = facts.named(&facts.ranges, |name| name.starts_with("Optimizer.step#"));
    let is_known = |id: &EventId| {
        let class = facts
            .name(*id)
            .rsplit_once('#')
            .map_or("", |(_, class)| class);
        WITH_FUSED.contains(&class)
    };
    let has_fused = steps.iter().any(is_known);
    let remedy = match (facts.has_device, has_fused) {
        (true, true) => None,
        (true, false) => Some(WITHOUT_FUSED),
        (false, true) => Some(ON_CPU),
        (false, false) => return Outcome::Clean,
    };
    let mut kinds: Vec<_> = (operators.iter())
        .map(|&id| facts.profile.event(id).name)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let work_factor = if kinds.len() >= SEVERAL {
        FUSED_WORK
    } else {
        1.0
    };
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
            FUSED_HOST.max(work_factor * work.0 as f32 / duration.0.max(1) as f32)
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
        remedy,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn updating(parameters: u64, operator: &str) -> mindprof_model::Profile {
        updating_by("Optimizer.step#Adam.step", parameters, operator)
    }

    fn updating_by(range: &str, parameters: u64, operator: &str) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.op("aten::mm", 500);
            time.call("train.py(20): step", |time| {
                time.range(range, |time| {
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

    // Large parameters: the work is what takes time, and a fused step reads them once.
    #[test]
    fn a_fused_step_does_the_work_in_one_pass() {
        let profile = training(4, |time, _| {
            time.op("aten::mm", 5_000);
            time.range("Optimizer.step#AdamW.step", |time| {
                for _ in 0..10 {
                    for operator in [
                        "mul_", "lerp_", "addcmul_", "sqrt", "div", "add_", "addcdiv_",
                    ] {
                        time.op(&format!("aten::{operator}"), 100);
                    }
                }
            });
        });
        let finding = found(profile, "optimizer-loop");
        assert!(finding.remedy.contains("saves nothing on the CPU"));
        assert_saves(&finding, 0.21);
    }

    // RMSprop has no fused step, and on the CPU nothing else is faster.
    #[test]
    fn an_optimizer_without_a_fused_step_is_clean_on_the_cpu() {
        let profile = updating_by("Optimizer.step#RMSprop.step", 60, "aten::mul_");
        assert_eq!(outcome(profile, "optimizer-loop"), "clean");
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
