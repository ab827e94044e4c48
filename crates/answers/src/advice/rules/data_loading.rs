//! The loop waits for its next batch.

use mindprof_model::{Category, EventId};

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "data-loading",
    cause: "the loop waits for its next batch",
    remedy: "load batches in the background: DataLoader(..., num_workers=4, persistent_workers=True)",
    price: Price::replay(0.03, (0.6, 1.1)),
    needs: &[EventKind::Cpu],
    check,
};

/// The change to try if the loader has workers.
const WITH_WORKERS: &str = "the workers are too slow: DataLoader(..., num_workers=MORE, prefetch_factor=4), or cheaper transforms";

fn check(facts: &Facts<'_>) -> Outcome {
    let is_loading = |id: &&EventId| facts.around(**id).is_loading;
    let loading: Vec<EventId> = facts.events.iter().filter(is_loading).copied().collect();
    // A few slow batches have a rule of their own.
    if loading.is_empty() || super::slow_fetch::explains_waiting(facts) {
        return Outcome::Clean;
    }
    let tree = facts.analysis.tree();
    let blamed = facts.blamed(loading.iter().map(|&id| (id, tree.self_time(id))));
    let is_range = |id: &&EventId| facts.profile.event(**id).category == Category::Annotation;
    let ranges: Vec<EventId> = loading.iter().filter(is_range).copied().collect();
    let has_workers = |id: &EventId| facts.name(*id).contains("_MultiProcessingDataLoaderIter");
    let remedy = ranges.iter().any(has_workers).then_some(WITH_WORKERS);
    let mut mending = Mending::default();
    mending.remove(loading);
    Outcome::Found(Evidence {
        events: ranges,
        mending,
        blame: blamed.map(Blame::Frame),
        remedy,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const NEXT: &str = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";

    fn with_loading(micros: u64) -> mindprof_model::Profile {
        training(6, |time, _| {
            time.range(NEXT, |time| {
                time.call("data.py(12): augment", |time| time.idle(micros));
            });
            time.op("aten::mm", 1_000);
        })
    }

    #[test]
    fn waiting_for_batches_is_found_with_the_function_that_makes_them() {
        let finding = found(with_loading(500), "data-loading");
        assert_eq!(blamed(&finding), "augment");
        assert_saves(&finding, 0.33);
    }

    #[test]
    fn slow_workers_have_a_remedy_of_their_own() {
        let profile = training(6, |time, _| {
            let next = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
            time.range(next, |time| time.idle(500));
            time.op("aten::mm", 1_000);
        });
        let finding = found(profile, "data-loading");
        assert!(
            finding.remedy.contains("prefetch_factor"),
            "{}",
            finding.remedy
        );
        let finding = found(with_loading(500), "data-loading");
        assert!(!finding.remedy.contains("prefetch_factor"));
    }

    #[test]
    fn batches_that_are_ready_at_once_are_clean() {
        assert_eq!(outcome(with_loading(20), "data-loading"), "clean");
    }

    // Batches are made while the device still works on the step before.
    #[test]
    fn loading_beside_device_work_costs_nothing() {
        let profile = training(6, |time, step| {
            let micros = if step == 0 { 10 } else { 800 };
            time.range(NEXT, |time| time.idle(micros));
            time.compute(10, 200);
        });
        assert_eq!(outcome(profile, "data-loading"), "clean");
    }
}
