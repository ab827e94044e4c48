//! The device waits for the CPU to launch small kernels.

use mindprof_model::{EventId, Nanos, StringId};
use rustc_hash::FxHashMap;

use super::gaps::missing_launches;
use crate::advice::facts::{Facts, is_wait_for_thread};
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::captured::{GRAPH_LAUNCH, captured};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "launch-bound",
    cause: "the device waits for the CPU to launch small kernels",
    remedy: "launch fewer and larger kernels: torch.compile(model, mode=\"reduce-overhead\"), or a larger batch",
    price: Price::general(0.1, (0.4, 1.2)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// A kernel that takes less than this is small: launching it takes about as long.
const SMALL: Nanos = Nanos(15_000);

/// A function that launches less than one in so many kernels is not to blame.
const LEAST_PART: usize = 3;

/// An optimizer that launches this many times as much as all else is to blame itself.
const MOSTLY: usize = 4;

fn check(facts: &Facts<'_>) -> Outcome {
    let mut times: Vec<Nanos> = facts.kernels.iter().map(|&id| facts.duration(id)).collect();
    if times.is_empty() {
        return Outcome::Clean;
    }
    let middle = times.len() / 2;
    if *times.select_nth_unstable(middle).1 >= SMALL {
        return Outcome::Clean;
    }
    if let Some(missing) = missing_launches(facts) {
        return Outcome::Unknown(missing);
    }
    // A captured graph is launched at once: operators, their launches and the framework's code that
    // calls them cost nothing. A call that waits for another thread is that thread's time.
    let waits = facts.names(is_wait_for_thread);
    let is_wait = |id: &EventId| waits[facts.profile.event(*id).name.index()];
    let mut mending = Mending::default();
    for id in captured(facts.analysis, facts.own) {
        if !is_wait(&id) {
            mending.scale(id, GRAPH_LAUNCH);
        }
    }
    // The function that launches most is to blame, however long its kernels take.
    // The optimizer follows the model, unless it launches everything.
    let is_of_optimizer = |id: &EventId| facts.around(*id).is_optimizer;
    let (of_optimizer, mut counted): (Vec<EventId>, Vec<EventId>) =
        facts.kernels.iter().partition(|id| is_of_optimizer(id));
    if counted.len() * MOSTLY < of_optimizer.len() {
        counted = of_optimizer;
    }
    let blamed = facts.blamed(counted.iter().map(|&id| (id, Nanos(1))));
    // Nobody is, if launches are spread over many functions.
    let blamed = blamed.filter(|&frame| {
        let function = facts.function_of(frame);
        let is_of_it = |id: &&EventId| facts.function(**id) == function;
        counted.iter().filter(is_of_it).count() * LEAST_PART >= counted.len()
    });
    let mut launches: FxHashMap<StringId, usize> = FxHashMap::default();
    for operator in (counted.iter()).filter_map(|&id| facts.outermost_operator(id)) {
        *launches
            .entry(facts.profile.event(operator).name)
            .or_default() += 1;
    }
    let most = (launches.into_iter()).max_by_key(|&(name, count)| (count, name));
    let most = most.filter(|&(_, count)| count * 2 > counted.len());
    let small = facts.kernels.iter().copied();
    let small = small.filter(|&id| facts.duration(id) < SMALL);
    Outcome::Found(Evidence {
        events: small.collect(),
        mending,
        blame: Some(blamed.map_or(Blame::Nobody, Blame::Frame)),
        name: most.map(|(name, _)| facts.profile.strings().text(name).to_owned()),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn launching(micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(5): forward", |time| time.compute(60, micros));
            time.synchronize();
        })
    }

    #[test]
    fn work_on_the_cpu_is_not_captured() {
        let profile = training(4, |time, _| {
            time.op("aten::linalg_svd", 10_000);
            time.call("model.py(5): forward", |time| time.compute(10, 4));
            time.synchronize();
        });
        assert_eq!(outcome(profile, "launch-bound"), "clean");
    }

    #[test]
    fn small_kernels_that_the_device_waits_for_are_found() {
        let finding = found(launching(4), "launch-bound");
        assert_eq!(blamed(&finding), "forward");
        assert!(finding.share > 0.5, "{}", finding.share);
    }

    // One kernel is longer than all others together.
    #[test]
    fn the_function_with_most_launches_is_to_blame() {
        let profile = training(4, |time, _| {
            time.call("model.py(5): forward", |time| time.compute(60, 4));
            time.call("loss.py(5): loss", |time| {
                time.operator("aten::sort", |time| {
                    time.idle(600);
                    time.kernel("sort_kernel", 400);
                });
            });
            time.synchronize();
        });
        let finding = found(profile, "launch-bound");
        assert_eq!(blamed(&finding), "forward");
        assert_eq!(finding.name.as_deref(), Some("aten::mm"));
    }

    #[test]
    fn no_function_is_to_blame_for_launches_that_are_everywhere() {
        let profile = training(4, |time, _| {
            for line in [5, 15, 25, 35, 45] {
                let function = format!("model.py({line}): part_{line}");
                time.call(&function, |time| time.compute(12, 4));
            }
            time.synchronize();
        });
        assert!(found(profile, "launch-bound").place.is_none());
    }

    #[test]
    fn larger_kernels_hide_their_launches() {
        assert_eq!(outcome(launching(40), "launch-bound"), "clean");
    }

    /// Returns the price of launches whose streams take turns, so that one kernel runs at nearly all
    /// times.
    fn price_of_turns(kernel: impl Fn(usize) -> &'static str) -> f64 {
        let profile = training(4, |time, _| {
            for stream in 0..4 {
                for _ in 0..15 {
                    time.operator("aten::mm", |time| {
                        time.kernel_on(stream, kernel(stream), 12);
                        time.idle(12);
                    });
                }
            }
            time.synchronize();
        });
        let found = advise(profile).findings;
        let found = found.iter().find(|one| one.rule.id == "launch-bound");
        found.map_or(0.0, |finding| finding.share)
    }

    // Nothing tells whether the kernels could run together.
    #[test]
    fn work_of_the_device_is_not_saved() {
        let share = price_of_turns(|_| "gemm");
        assert!(share < 0.5, "{share}");
    }

    #[test]
    fn collectives_that_may_wait_for_others_are_no_work_of_the_device() {
        let share = price_of_turns(|stream| match stream {
            0 => "gemm",
            _ => "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        });
        assert!(share > 0.5, "{share}");
    }

    // One large kernel keeps the device busy while the small ones are launched.
    #[test]
    fn small_kernels_of_a_device_that_is_never_idle_are_clean() {
        let profile = training(4, |time, _| {
            time.compute(1, 3_000);
            time.compute(60, 4);
        });
        assert_eq!(outcome(profile, "launch-bound"), "clean");
    }
}
