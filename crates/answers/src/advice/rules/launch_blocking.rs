//! Each launch waits until its kernel is done.

use mindprof_model::{Category, EventId, Nanos};
use rustc_hash::FxHashMap;

use super::npu;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "launch-blocking",
    cause: "each launch waits until its kernel is done",
    remedy: "unset CUDA_LAUNCH_BLOCKING, which is for finding errors",
    price: Price::replay(0.02, (0.7, 1.3)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// Shorter kernels end before their launch returns anyway.
const LONG: Nanos = Nanos(20_000);

/// So many long kernels are needed to tell, and this part of them has to be waited for.
const ENOUGH: usize = 10;
const MOST: f64 = 0.8;

/// As many long kernels are looked at.
const LOOKED_AT: usize = 2_000;

/// Device work may seem to end a little later than the call that waited for it.
const CLOCK_ERROR: Nanos = Nanos(2_000);

/// How long a launch takes that waits for nothing.
const USUAL: f32 = 8_000.0;

fn check(facts: &Facts<'_>) -> Outcome {
    if npu::is_npu(facts) {
        return check_npu(facts);
    }
    let correlation = |id| facts.profile.links(id).map_or(0, |links| links.correlation);
    let end = |id: EventId| facts.profile.event(id).end();
    let long = facts
        .kernels
        .iter()
        .filter(|&&id| facts.duration(id) >= LONG);
    let ends: FxHashMap<u32, Nanos> = (long.take(LOOKED_AT))
        .map(|&id| (correlation(id), end(id)))
        .collect();
    if ends.len() < ENOUGH {
        return Outcome::Clean;
    }
    let events = facts.named(&facts.runtime, |name| name.contains("Launch"));
    let (mut known, mut blocked) = (0, 0);
    for &id in &events {
        if let Some(&done) = ends.get(&correlation(id)) {
            known += 1;
            blocked += u32::from(done <= end(id) + CLOCK_ERROR);
        }
    }
    if known == 0 || f64::from(blocked) < MOST * f64::from(known) {
        return Outcome::Clean;
    }
    let mut mending = Mending::default();
    for &id in &events {
        mending.scale(id, (USUAL / facts.duration(id).0.max(1) as f32).min(1.0));
    }
    Outcome::Found(Evidence {
        events,
        mending,
        blame: Some(Blame::Nobody),
        ..Evidence::default()
    })
}

/// The change to try for an NPU.
const ON_NPU: &str = "unset ASCEND_LAUNCH_BLOCKING, which is for finding errors";

/// As many waits for each kernel show that operators wait.
const WAITS: f64 = 0.5;

/// Operators that wait for their results whatever the environment is.
const READERS: [&str; 7] = [
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::is_nonzero",
    "aten::nonzero",
    "aten::to",
    "aten::_to_copy",
    "aten::copy_",
];

/// Returns the waits of an NPU's operators, if its operators wait. With the variable set, each waits
/// for its stream itself, after it has launched its kernels.
pub(super) fn waits_of_operators(facts: &Facts<'_>) -> Vec<EventId> {
    if !npu::is_npu(facts) {
        return Vec::new();
    }
    let waits = facts.named(&facts.runtime, |name| {
        name.starts_with("AscendCL@aclrtSynchronizeStream")
    });
    let is_reader = facts.names(|name| READERS.contains(&name));
    let is_blocking = |id: &&EventId| {
        let around = std::iter::successors(facts.parent(**id), |&at| facts.parent(at));
        let mut operators = around.map(|at| facts.profile.event(at));
        facts.around(**id).is_in_operator
            && !operators
                .any(|event| event.category == Category::Operator && is_reader[event.name.index()])
    };
    let waits: Vec<EventId> = waits.iter().filter(is_blocking).copied().collect();
    let is_much = waits.len() as f64 >= WAITS * facts.kernels.len() as f64;
    if waits.len() >= ENOUGH && is_much {
        waits
    } else {
        Vec::new()
    }
}

/// Looks at the operators of an NPU.
fn check_npu(facts: &Facts<'_>) -> Outcome {
    let waits = waits_of_operators(facts);
    if waits.is_empty() {
        return Outcome::Clean;
    }
    let mut mending = Mending::default();
    for &id in &waits {
        mending.scale(id, 0.0);
        mending.unblock(id);
    }
    Outcome::Found(Evidence {
        events: waits,
        mending,
        blame: Some(Blame::Nobody),
        remedy: Some(ON_NPU),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn blocking(kernels: usize) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.compute(20 - kernels, 100);
            for _ in 0..kernels {
                time.operator("aten::mm", |time| {
                    time.idle(40);
                    time.blocking_kernel("bf16_gemm", 100);
                    time.idle(40);
                });
            }
        })
    }

    #[test]
    fn launches_that_wait_are_found() {
        let finding = found(blocking(20), "launch-blocking");
        assert_eq!(blamed(&finding), "nobody");
        assert!((0.25..0.6).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn a_few_launches_that_wait_are_clean() {
        assert_eq!(outcome(blocking(4), "launch-blocking"), "clean");
    }

    /// Draws operators of an NPU, as many of which wait as are given.
    fn blocking_on_npu(operator: &str, waiting: usize) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.on_npu();
            for number in 0..20 {
                time.operator(operator, |time| {
                    time.idle(40);
                    time.kernel("MatMulV2", 100);
                    if number < waiting {
                        time.runtime("AscendCL@aclrtSynchronizeStreamWithTimeout", 110);
                    }
                    time.idle(40);
                });
            }
        })
    }

    #[test]
    fn operators_of_an_npu_that_wait_are_found() {
        let finding = found(blocking_on_npu("aten::mm", 20), "launch-blocking");
        assert!(finding.remedy.contains("ASCEND_LAUNCH_BLOCKING"));
        assert_eq!(blamed(&finding), "nobody");
        assert!((0.3..0.6).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn a_few_operators_of_an_npu_that_wait_are_clean() {
        assert_eq!(
            outcome(blocking_on_npu("aten::mm", 9), "launch-blocking"),
            "clean"
        );
    }

    // Each of these reads a number, and has to wait for it.
    #[test]
    fn operators_that_read_numbers_are_another_cause() {
        let profile = blocking_on_npu("aten::item", 20);
        assert_eq!(outcome(profile, "launch-blocking"), "clean");
        let profile = training(4, |time, _| {
            time.on_npu();
            for _ in 0..20 {
                time.compute(1, 100);
                time.runtime("AscendCL@aclrtSynchronizeStream", 80);
            }
        });
        assert_eq!(outcome(profile, "launch-blocking"), "clean");
    }

    // The program waits itself, which is another cause.
    #[test]
    fn waits_of_the_program_are_another_cause() {
        let profile = training(4, |time, _| {
            for _ in 0..20 {
                time.compute(1, 100);
                time.synchronize();
            }
        });
        assert_eq!(outcome(profile, "launch-blocking"), "clean");
    }
}
