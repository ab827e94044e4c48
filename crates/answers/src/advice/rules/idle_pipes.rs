//! Kernels of an NPU keep none of its pipes busy.

use mindprof_model::{EventId, Nanos, PassthroughKind};
use serde_json::{Map, Value};

use super::npu;
use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "idle-pipes",
    cause: "kernels neither compute nor move data most of the time: no pipe of the NPU is busy for 80 % of them",
    remedy: "use a fused operator of torch_npu, or other shapes; let AOE tune the operator; in one of your own, load the next tile while this one is computed",
    price: Price::Unpriced { rank: 0.015 },
    needs: &[EventKind::Device],
    check,
};

/// Shorter kernels are mostly their beginning and end.
const LONG: Nanos = Nanos(20_000);

/// A pipe that works for this part of a kernel is busy.
const BUSY: f64 = 0.8;

/// Such kernels have to be this part of the step.
const MUCH: f64 = 0.1;

/// As many kernels are looked at, evenly spread.
const LOOKED_AT: usize = 20_000;

/// The pipes of cube and vector cores, and their names before they had cores of their own. Ratios of
/// arithmetic, such as `aic_mac_fp16_ratio`, are parts of a pipe's work.
const PIPES: [&str; 15] = [
    "aic_mac_ratio",
    "aic_scalar_ratio",
    "aic_mte1_ratio",
    "aic_mte2_ratio",
    "aic_fixpipe_ratio",
    "aiv_vec_ratio",
    "aiv_scalar_ratio",
    "aiv_mte2_ratio",
    "aiv_mte3_ratio",
    "mac_ratio",
    "vec_ratio",
    "scalar_ratio",
    "mte1_ratio",
    "mte2_ratio",
    "mte3_ratio",
];

/// A recording of pipes has at least one of these.
const SURE: [&str; 4] = [
    "aic_mte2_ratio",
    "aiv_mte2_ratio",
    "mte2_ratio",
    "aic_mac_ratio",
];

fn check(facts: &Facts<'_>) -> Outcome {
    if !npu::is_npu(facts) {
        return Outcome::Clean;
    }
    let is_long = |id: &&EventId| facts.duration(**id) >= LONG;
    let long: Vec<EventId> = facts.kernels.iter().filter(is_long).copied().collect();
    if facts.share(&long) < MUCH {
        return Outcome::Clean;
    }
    let every = long.len() / LOOKED_AT + 1;
    let looked_at = long.into_iter().step_by(every);
    let known: Vec<(EventId, f64)> = looked_at
        .filter_map(|id| Some((id, busiest(facts, id)?)))
        .collect();
    if known.is_empty() {
        return Outcome::Unknown(
            "the times of pipes are not in this profile: aic_metrics=AiCMetrics.PipeUtilization, and read the database or the whole folder",
        );
    }
    // A kernel that counted nothing was not measured.
    let is_idle = |&&(_, busiest): &&(EventId, f64)| busiest > 0.0 && busiest < BUSY;
    let idle: Vec<EventId> = known.iter().filter(is_idle).map(|&(id, _)| id).collect();
    if facts.share(&idle) * (every as f64) < MUCH || !facts.is_usual(&idle) {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        events: idle,
        ..Evidence::default()
    })
}

/// Returns the part of a kernel's time in which its busiest pipe works. `None` if other counters
/// were recorded. The names of pipes have digits, so that the whole text has to be parsed.
fn busiest(facts: &Facts<'_>, id: EventId) -> Option<f64> {
    let passthrough = facts.profile.passthrough();
    let text = passthrough.of(PassthroughKind::Arguments, id.index())?;
    let text = format!("{{{}}}", passthrough.texts.text(text));
    let arguments: Map<String, Value> = serde_json::from_str(&text).ok()?;
    let ratio = |pipe: &&str| arguments.get(*pipe)?.as_f64();
    SURE.iter().find_map(ratio)?;
    PIPES.iter().filter_map(ratio).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn working(counters: &str, micros: u64) -> mindprof_model::Profile {
        multiplying_on_npu(|time| time.kernel_with("MatMulV2", micros, counters))
    }

    #[test]
    fn kernels_without_a_busy_pipe_are_found() {
        let counters = "\"aic_mac_ratio\": 0.31, \"aic_mte2_ratio\": 0.55, \"aiv_vec_ratio\": 0";
        let finding = found(working(counters, 1_000), "idle-pipes");
        assert_eq!((blamed(&finding), finding.share), ("forward", 0.0));
        assert_eq!(finding.name.as_deref(), Some("MatMulV2"));
    }

    #[test]
    fn kernels_with_one_busy_pipe_are_clean() {
        let counters = "\"aic_mac_ratio\": 0.31, \"aic_mte2_ratio\": 0.8";
        assert_eq!(outcome(working(counters, 1_000), "idle-pipes"), "clean");
        let idle = "\"aic_mac_ratio\": 0.31, \"aic_mte2_ratio\": 0.5";
        assert_eq!(outcome(working(idle, 25), "idle-pipes"), "clean");
    }

    // Ratios of arithmetic are small in any kernel that only copies.
    #[test]
    fn other_counters_tell_nothing() {
        let counters = "\"aic_mac_fp16_ratio\": 0.01, \"aiv_vec_fp32_ratio\": 0.02";
        assert_eq!(outcome(working(counters, 1_000), "idle-pipes"), "unknown");
        let nothing = "\"aic_mac_ratio\": 0, \"aic_mte2_ratio\": 0";
        assert_eq!(outcome(working(nothing, 1_000), "idle-pipes"), "clean");
    }
}
