//! Most of the device's time belongs to captured graphs.

use mindprof_model::EventId;
use rustc_hash::FxHashSet;

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "opaque-graph",
    cause: "most of the device's time belongs to captured graphs, whose operators are not known",
    remedy: "record one step without graphs: TORCHINDUCTOR_CUDAGRAPHS=0, or without torch.cuda.graph",
    price: Price::Unpriced { rank: 0.015 },
    needs: &[EventKind::Device],
    check,
};

/// More than this part of the time of kernels is most of it.
const MOST: f64 = 0.5;

fn check(facts: &Facts<'_>) -> Outcome {
    let correlation = |id: EventId| facts.profile.links(id).map_or(0, |links| links.correlation);
    let launches = facts.named(&facts.runtime, |name| name.contains("GraphLaunch"));
    if launches.is_empty() {
        return Outcome::Clean;
    }
    let graphs: FxHashSet<u32> = launches.iter().map(|&id| correlation(id)).collect();
    let is_of_graph = |id: &&EventId| graphs.contains(&correlation(**id));
    let kernels: Vec<EventId> = facts.kernels.iter().filter(is_of_graph).copied().collect();
    if facts.share(&kernels) <= MOST * facts.share(&facts.kernels) {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        events: kernels,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn replaying(graph: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.compute(10, 100);
            time.call("train.py(4): replay", |time| time.graph("bf16_gemm", graph));
            time.synchronize();
        })
    }

    #[test]
    fn time_in_a_graph_is_a_hint() {
        let finding = found(replaying(2_000), "opaque-graph");
        assert!(finding.share.abs() < f64::EPSILON);
        assert_eq!(finding.name.as_deref(), Some("bf16_gemm"));
    }

    #[test]
    fn a_small_graph_is_clean() {
        assert_eq!(outcome(replaying(500), "opaque-graph"), "clean");
    }

    #[test]
    fn kernels_of_operators_are_clean() {
        let profile = training(4, |time, _| time.compute(10, 100));
        assert_eq!(outcome(profile, "opaque-graph"), "clean");
    }
}
