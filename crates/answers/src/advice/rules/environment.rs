//! The program ran with settings that are for finding errors.

use serde_json::Value;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "environment",
    cause: "the program ran with settings that are for finding errors",
    remedy: "unset it for training, and set it only to search for an error",
    price: Price::Unpriced { rank: 0.03 },
    needs: &[],
    check,
};

/// Variables, the values of them that cost time, and what to do about each.
const SLOW: [(&str, &[&str], &str); 8] = [
    (
        "CUDA_LAUNCH_BLOCKING",
        &["1"],
        "unset CUDA_LAUNCH_BLOCKING: each launch waits until its kernel is done",
    ),
    (
        "TORCH_DISTRIBUTED_DEBUG",
        &["DETAIL"],
        "unset TORCH_DISTRIBUTED_DEBUG=DETAIL: each collective is checked on all ranks",
    ),
    (
        "NCCL_DEBUG",
        &["TRACE"],
        "NCCL_DEBUG=WARN: a trace of each call costs time",
    ),
    (
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        &["1"],
        "unset PYTORCH_NO_CUDA_MEMORY_CACHING: each tensor takes memory from the driver",
    ),
    (
        "OMP_NUM_THREADS",
        &["1"],
        "raise OMP_NUM_THREADS to the number of cores per process",
    ),
    ("PYTHONASYNCIODEBUG", &["1"], "unset PYTHONASYNCIODEBUG"),
    (
        "ASCEND_LAUNCH_BLOCKING",
        &["1"],
        "unset ASCEND_LAUNCH_BLOCKING: each operator waits until its kernels are done",
    ),
    (
        "ASCEND_GLOBAL_LOG_LEVEL",
        &["0", "1"],
        "ASCEND_GLOBAL_LOG_LEVEL=3: CANN writes a log of each call",
    ),
];

fn check(facts: &Facts<'_>) -> Outcome {
    let metadata = facts.profile.metadata();
    // torch_npu notes them together.
    let listed = metadata.get("ENV_VARIABLES");
    let listed = listed.and_then(|listed| serde_json::from_str::<Value>(listed).ok());
    let value = |name: &str| {
        let alone = metadata.get(name).map(|value| value.trim_matches('"'));
        alone.or_else(|| listed.as_ref()?.get(name)?.as_str())
    };
    let known = SLOW
        .iter()
        .filter_map(|(name, slow, remedy)| Some((*name, value(name)?, *slow, *remedy)));
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return Outcome::Unknown(
            "the environment is not in this profile: profiler.add_metadata(\"CUDA_LAUNCH_BLOCKING\", value)",
        );
    }
    let found = known
        .iter()
        .find(|(_, value, slow, _)| slow.contains(value));
    let Some((name, _, _, remedy)) = found else {
        return Outcome::Clean;
    };
    Outcome::Found(Evidence {
        name: Some((*name).to_owned()),
        blame: Some(Blame::Nobody),
        remedy: Some(remedy),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn with_variable(name: &str, value: &str) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.note(name, value);
            time.op("aten::mm", 100);
        })
    }

    #[test]
    fn a_setting_for_finding_errors_is_a_hint() {
        let finding = found(
            with_variable("CUDA_LAUNCH_BLOCKING", "\"1\""),
            "environment",
        );
        assert_eq!(finding.name.as_deref(), Some("CUDA_LAUNCH_BLOCKING"));
        assert!(finding.share.abs() < f64::EPSILON);
    }

    #[test]
    fn variables_that_torch_npu_lists_are_known() {
        let listed = |level: &str| {
            let all =
                format!("{{\"ASCEND_GLOBAL_LOG_LEVEL\": \"{level}\", \"HCCL_RDMA_TC\": \"\"}}");
            with_variable("ENV_VARIABLES", &all)
        };
        let finding = found(listed("1"), "environment");
        assert!(finding.remedy.contains("LOG_LEVEL=3"), "{}", finding.remedy);
        assert_eq!(outcome(listed("3"), "environment"), "clean");
        let damaged = with_variable("ENV_VARIABLES", "{\"ASCEND_GLOBAL_LOG_LEVEL\": \"1");
        assert_eq!(outcome(damaged, "environment"), "unknown");
    }

    #[test]
    fn a_setting_that_is_off_is_clean() {
        assert_eq!(
            outcome(with_variable("CUDA_LAUNCH_BLOCKING", "0"), "environment"),
            "clean"
        );
    }

    #[test]
    fn other_metadata_tells_nothing() {
        assert_eq!(
            outcome(with_variable("launch", "1"), "environment"),
            "unknown"
        );
    }
}
