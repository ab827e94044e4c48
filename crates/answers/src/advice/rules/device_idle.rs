//! The device is idle because the CPU is late.

use mindprof_model::{Category, EventId, Nanos, StringId};
use rustc_hash::FxHashMap;

use super::gaps::{gaps, missing_launches};
use crate::advice::facts::{Facts, is_wait_for_thread};
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "device-idle",
    cause: "the device waits for the CPU",
    remedy: "give the device more work per launch: a larger batch, torch.compile(model), fewer Python calls in the step",
    price: Price::general(0.1, (0.3, 1.6)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// Shorter gaps are the usual time between two kernels.
const LEAST_GAP: Nanos = Nanos(10_000);

/// The part of the recorded steps that the device may be idle.
const USUAL: f64 = 0.1;

/// The price is that of a CPU which takes this part of its time.
const FASTER: f32 = 0.5;

/// If most kernels are shorter, the device waits for their launches, which has a rule of its own.
const SMALL: Nanos = Nanos(15_000);

fn check(facts: &Facts<'_>) -> Outcome {
    let mut times: Vec<Nanos> = facts.kernels.iter().map(|&id| facts.duration(id)).collect();
    let middle = times.len() / 2;
    if times.is_empty() || *times.select_nth_unstable(middle).1 < SMALL {
        return Outcome::Clean;
    }
    let gaps = gaps(facts, LEAST_GAP);
    let idle: u64 = gaps.iter().map(|gap| gap.duration().0).sum();
    let steps: u64 = (facts.replay.steps().iter())
        .map(|step| step.duration.0)
        .sum();
    if idle as f64 <= USUAL * steps as f64 {
        return Outcome::Clean;
    }
    if let Some(missing) = missing_launches(facts) {
        return Outcome::Unknown(missing);
    }
    let waits = facts.names(is_wait_for_thread);
    let mut mending = Mending::default();
    for &id in &facts.events {
        let is_host = match facts.profile.event(id).category {
            Category::Operator
            | Category::Runtime
            | Category::PythonFunction
            | Category::Annotation => true,
            Category::Kernel | Category::DeviceAnnotation | Category::Other => false,
        };
        let is_wait = waits[facts.profile.event(id).name.index()];
        if is_host && !is_wait && !facts.around(id).is_loading {
            mending.scale(id, FASTER);
        }
    }
    // The operator that the device waits for most.
    let mut times: FxHashMap<StringId, u64> = FxHashMap::default();
    for gap in &gaps {
        if let Some(operator) = facts.outermost_operator(gap.next) {
            let name = facts.profile.event(operator).name;
            *times.entry(name).or_default() += gap.duration().0;
        }
    }
    let most = times.into_iter().max_by_key(|&(name, time)| (time, name));
    let blamed = facts.blamed(gaps.iter().map(|gap| (gap.next, gap.duration())));
    let events: Vec<EventId> = gaps.iter().map(|gap| gap.next).collect();
    Outcome::Found(Evidence {
        events,
        mending,
        blame: blamed.map(Blame::Frame),
        name: most.map(|(name, _)| facts.profile.strings().text(name).to_owned()),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    /// A CPU that takes this long for each kernel of 100 us.
    fn launching(host: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(7): forward", |time| {
                for _ in 0..20 {
                    time.operator("aten::mm", |time| {
                        time.idle(host);
                        time.kernel("bf16_gemm", 100);
                    });
                }
            });
        })
    }

    #[test]
    fn a_late_host_is_found() {
        let finding = found(launching(300), "device-idle");
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.48);
    }

    #[test]
    fn a_host_that_keeps_up_is_clean() {
        assert_eq!(outcome(launching(90), "device-idle"), "clean");
    }

    // The device works at times, and no call says why not at others.
    #[test]
    fn kernels_without_launches_tell_nothing() {
        let profile = training(4, |time, _| {
            for _ in 0..10 {
                time.idle(300);
                time.unlaunched_kernel("bf16_gemm", 80);
            }
        });
        assert_eq!(outcome(profile, "device-idle"), "unknown");
    }

    // One stream is idle for long, but the other one works.
    #[test]
    fn an_idle_stream_is_no_idle_device() {
        let profile = training(4, |time, _| {
            for _ in 0..20 {
                time.operator("aten::mm", |time| {
                    time.idle(80);
                    time.kernel("bf16_gemm", 100);
                });
            }
            time.operator("nccl:all_reduce", |time| {
                time.kernel_on(1, "ncclDevKernel_AllReduce", 50);
            });
        });
        assert_eq!(outcome(profile, "device-idle"), "clean");
    }
}
