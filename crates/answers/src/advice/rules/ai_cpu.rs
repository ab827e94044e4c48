//! Operators run on the CPU of an NPU.

use mindprof_model::{DeviceKind, EventId, Nanos};

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "ai-cpu",
    cause: "operators run on the NPU's AI CPU, which is far slower than its AI cores",
    remedy: "give them inputs that AI cores take: int32 instead of int64, float32 instead of float64; or replace the operator",
    price: Price::replay(0.01, (0.5, 1.1)),
    needs: &[EventKind::Device],
    check,
};

/// Shorter tasks cost little more than they would elsewhere.
const LONG: Nanos = Nanos(20_000);

/// How long an AI core takes for the same task, as is assumed.
const ON_CORES: f32 = 0.1;

fn check(facts: &Facts<'_>) -> Outcome {
    let is_long = |id: &&EventId| facts.duration(**id) > LONG;
    let long: Vec<EventId> = facts.kernels.iter().filter(is_long).copied().collect();
    let kinds = long
        .iter()
        .filter_map(|&id| Some((id, facts.argument_text(id, "Task Type")?)));
    let kinds: Vec<(EventId, String)> = kinds.collect();
    let is_npu = facts.analysis.accelerator() == Some(DeviceKind::PrivateUse1);
    if kinds.is_empty() && !long.is_empty() && is_npu {
        return Outcome::Unknown("the types of tasks are not in this profile");
    }
    let slow = kinds.into_iter().filter(|(_, kind)| kind == "AI_CPU");
    let slow: Vec<EventId> = slow.map(|(id, _)| id).collect();
    if !facts.is_usual(&slow) {
        return Outcome::Clean;
    }
    let mut mending = Mending::default();
    for &id in &slow {
        mending.scale(id, ON_CORES);
    }
    Outcome::Found(Evidence {
        events: slow,
        mending,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn indexing(kind: &str, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.compute(10, 100);
            time.call("model.py(4): forward", |time| {
                time.operator("aten::index", |time| {
                    time.kernel_with("Index", micros, &format!("\"Task Type\": \"{kind}\""));
                });
            });
            time.synchronize();
        })
    }

    #[test]
    fn an_operator_on_the_ai_cpu_is_found() {
        let finding = found(indexing("AI_CPU", 1_000), "ai-cpu");
        assert_eq!(blamed(&finding), "forward");
        assert_eq!(finding.name.as_deref(), Some("Index"));
        assert_saves(&finding, 0.45);
    }

    #[test]
    fn a_short_task_is_clean() {
        assert_eq!(outcome(indexing("AI_CPU", 20), "ai-cpu"), "clean");
    }

    #[test]
    fn a_slow_task_of_an_ai_core_is_clean() {
        assert_eq!(
            outcome(indexing("AI_VECTOR_CORE", 1_000), "ai-cpu"),
            "clean"
        );
    }
}
