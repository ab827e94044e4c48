//! Each normalization waits for the other ranks.

use mindprof_model::EventId;

use crate::advice::facts::{Facts, MODULE};
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "sync-batchnorm",
    cause: "each batch normalization waits for the other ranks",
    remedy: "nn.GroupNorm, or nn.BatchNorm2d where a rank's batch is large enough; SyncBatchNorm(process_group=...) of one machine",
    price: Price::replay(0.02, (0.6, 1.2)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

/// A few synchronized layers are usual.
const MANY: f64 = 20.0;

/// The beginnings of the names of communication.
const COMMUNICATION: [&str; 4] = ["c10d::", "nccl:", "gloo:", "ncclDevKernel"];

fn check(facts: &Facts<'_>) -> Outcome {
    let is_layer = |name: &str| {
        name == "SyncBatchNorm"
            || (name.strip_prefix(MODULE)).is_some_and(|name| name.starts_with("SyncBatchNorm"))
    };
    let mut layers = facts.named(&facts.calls, is_layer);
    layers.extend(facts.named(&facts.operators, is_layer));
    let layers = facts.outermost(&layers);
    if facts.per_step(layers.len()) < MANY {
        return Outcome::Clean;
    }
    let is_inside = facts.inside(&layers);
    let is_communication =
        facts.names(|name| COMMUNICATION.iter().any(|known| name.starts_with(known)));
    let is_found = |id: &&EventId| {
        is_inside[id.index()] && is_communication[facts.profile.event(**id).name.index()]
    };
    let found: Vec<EventId> = facts.events.iter().filter(is_found).copied().collect();
    Outcome::without(facts, found)
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn normalizing(class: &str, layers: usize) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(4): forward", |time| {
                for layer in 0..layers {
                    time.call(&format!("nn.Module: {class}_{layer}"), |time| {
                        time.op("aten::batch_norm_stats", 20);
                        time.op("c10d::allgather_", 60);
                    });
                }
            });
            time.op("aten::mm", 1_000);
        })
    }

    #[test]
    fn many_synchronized_layers_are_found() {
        let finding = found(normalizing("SyncBatchNorm", 30), "sync-batchnorm");
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.5);
    }

    #[test]
    fn a_few_synchronized_layers_are_clean() {
        assert_eq!(
            outcome(normalizing("SyncBatchNorm", 10), "sync-batchnorm"),
            "clean"
        );
    }

    #[test]
    fn other_layers_are_clean() {
        assert_eq!(
            outcome(normalizing("BatchNorm2d", 30), "sync-batchnorm"),
            "clean"
        );
    }
}
