//! The device waits for the CPU to launch small kernels.

use mindprof_model::{EventId, Nanos};

use crate::advice::facts::{Facts, is_wait_for_thread};
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "launch-bound",
    cause: "the device waits for the CPU to launch small kernels",
    remedy: "launch fewer and larger kernels: torch.compile(model, mode=\"reduce-overhead\"), or a larger batch",
    price: Price::general(0.1, (0.4, 1.2)),
    check,
};

/// A kernel that takes less than this is small: launching it takes about as long.
const SMALL: Nanos = Nanos(15_000);

/// The CPU time of replaying a captured graph, compared with launching each kernel.
const GRAPH: f32 = 0.02;

/// An operator that takes longer than this and launches nothing computes on the CPU.
const LONG: Nanos = Nanos(100_000);

fn check(facts: &Facts<'_>) -> Outcome {
    let mut times: Vec<Nanos> = facts.kernels.iter().map(|&id| facts.duration(id)).collect();
    if times.is_empty() {
        return Outcome::Clean;
    }
    let middle = times.len() / 2;
    if *times.select_nth_unstable(middle).1 >= SMALL {
        return Outcome::Clean;
    }
    // A captured graph is launched at once: operators, their launches and the Python code that calls
    // them cost nothing.
    let is_of_model = |id: &&EventId| !facts.around(**id).is_loading;
    let waits = facts.names(is_wait_for_thread);
    let is_framework =
        |id: &&EventId| !facts.is_own_call(**id) && !waits[facts.profile.event(**id).name.index()];
    let launching = facts.operators.iter().chain(&facts.runtime);
    // A long operator that launches nothing computes on the CPU, and no graph captures it.
    let on_cpu: Vec<EventId> = facts
        .operators
        .iter()
        .copied()
        .filter(|&id| {
            facts.duration(id) > LONG && facts.analysis.device_times().total(id) == Nanos::ZERO
        })
        .collect();
    let is_on_cpu = facts.inside(&on_cpu);
    let is_launching = |id: &&EventId| is_of_model(id) && !is_on_cpu[id.index()];
    let launching: Vec<EventId> = launching.filter(is_launching).copied().collect();
    let calls = facts.calls.iter().filter(is_of_model).filter(is_framework);
    let mut mending = Mending::default();
    for &id in launching.iter().chain(calls) {
        mending.scale(id, GRAPH);
    }
    // Python calls launch little: most of their time is a wait for the backward pass.
    let tree = facts.analysis.tree();
    let blamed = facts.blamed(launching.iter().map(|&id| (id, tree.self_time(id))));
    Outcome::Found(Evidence {
        events: facts.kernels.clone(),
        mending,
        blame: blamed.map(Blame::Frame),
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

    #[test]
    fn larger_kernels_hide_their_launches() {
        assert_eq!(outcome(launching(40), "launch-bound"), "clean");
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
