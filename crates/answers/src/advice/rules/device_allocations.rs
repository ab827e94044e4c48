//! Device memory is taken from the driver and returned to it again and again.

use mindprof_model::EventId;

use super::growing_memory::growth;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;
use crate::replay::is_allocation_call;

pub(super) const RULE: Rule = Rule {
    id: "device-allocations",
    cause: "device memory is taken from the driver and returned to it again and again",
    remedy: "remove torch.cuda.empty_cache() from the loop; if memory is fragmented, \
             PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    price: Price::replay(0.02, (0.5, 1.3)),
    needs: &[EventKind::Cpu],
    check,
};

/// The change to try if the program needs more memory in each step.
const GROWING: &str = "memory grows with every step, so each one takes more from the driver: keep numbers, not tensors with their graph (loss.item(), loss.detach())";

/// The change to try if nothing is returned to the driver.
const NEVER_FREED: &str = "let all steps use the same sizes: pad inputs, or run the largest one first; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

/// Fewer calls are usual in a program without steps.
const MANY: f64 = 50.0;

fn check(facts: &Facts<'_>) -> Outcome {
    let calls = facts.named(&facts.runtime, is_allocation_call);
    // A program without steps takes memory when it begins.
    let usual = if facts.replay.has_steps() { 1.0 } else { MANY };
    if facts.per_step(calls.len()) < usual {
        return Outcome::Clean;
    }
    let mut mending = Mending::default();
    for &id in &calls {
        mending.scale(id, 0.0);
        mending.unblock(id);
    }
    // The code that frees is to blame: the allocations follow from it.
    let is_free = |id: &&EventId| facts.name(**id).contains("Free");
    let frees: Vec<EventId> = calls.iter().filter(is_free).copied().collect();
    let (blame, remedy) = match growth(facts) {
        _ if frees.len() * 4 >= calls.len() => {
            let times = frees.iter().map(|&id| (id, facts.duration(id)));
            (facts.blamed(times).map(Blame::Frame), None)
        }
        Some(growth) => (growth.blame, Some(GROWING)),
        None => (None, Some(NEVER_FREED)),
    };
    Outcome::Found(Evidence {
        events: calls,
        mending,
        blame,
        remedy,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn with_frees(micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.operator("aten::empty", |time| time.runtime("cudaMalloc", micros));
            time.compute(10, 100);
            time.call("train.py(8): tidy_up", |time| {
                time.synchronize();
                time.runtime("cudaFree", micros);
            });
        })
    }

    #[test]
    fn returning_memory_in_each_step_is_found() {
        let finding = found(with_frees(400), "device-allocations");
        assert_eq!(blamed(&finding), "tidy_up");
        assert_saves(&finding, 0.41);
    }

    #[test]
    fn cheap_calls_are_clean() {
        assert_eq!(outcome(with_frees(5), "device-allocations"), "clean");
    }

    // Every step keeps a tensor, so the allocator has to take more memory.
    #[test]
    fn memory_that_grows_is_no_emptied_cache() {
        let growing = |kept: i64| {
            training(8, move |time, step| {
                time.call("train.py(5): forward", |time| {
                    time.operator("aten::empty", |time| {
                        time.runtime("cudaMalloc", 400);
                        time.allocate(0x1000 * (step + 1), 1 << 24);
                    });
                    time.compute(10, 100);
                    time.synchronize();
                });
                if kept == 0 {
                    time.allocate(0x1000 * (step + 1), -(1 << 24));
                }
            })
        };
        let finding = found(growing(1), "device-allocations");
        assert!(finding.remedy.contains("grows"), "{}", finding.remedy);
        assert_eq!(blamed(&finding), "forward");
        let finding = found(growing(0), "device-allocations");
        assert!(!finding.remedy.contains("empty_cache"));
    }

    // The allocator takes its memory in the first step and keeps it.
    #[test]
    fn memory_that_is_taken_once_is_clean() {
        let profile = training(5, |time, step| {
            if step == 0 {
                time.runtime("cudaMalloc", 500);
            }
            time.compute(10, 100);
            time.synchronize();
        });
        assert_eq!(outcome(profile, "device-allocations"), "clean");
    }

    #[test]
    fn the_first_calls_of_a_program_are_clean() {
        let profile = program(|time| {
            for _ in 0..20 {
                time.operator("aten::empty", |time| time.runtime("cudaMalloc", 400));
                time.compute(1, 100);
            }
        });
        assert_eq!(outcome(profile, "device-allocations"), "clean");
    }
}
