//! The loop waits for its next batch.
//!
//! Workers need CPU cores. Beside a device they are usually free; a loop that computes on the CPU
//! shares its own with them.

use mindprof_model::{Category, EventId, Metadata, WAITING_FRAME};

use super::blocking_call;
use crate::advice::Confidence;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "data-loading",
    cause: "the loop waits for its next batch",
    remedy: "load batches in the background: DataLoader(..., num_workers=1, persistent_workers=True), and more while CPU cores are free",
    price: Price::replay(0.03, (0.6, 1.1)),
    needs: &[EventKind::Cpu],
    check,
};

/// The change to try if the loader has workers.
const WITH_WORKERS: &str = "the workers are too slow: DataLoader(..., prefetch_factor=4), more num_workers while CPU cores are free, or cheaper transforms";

/// The change to try if the CPU computes, too.
const WITHOUT_DEVICE: &str = "load batches in the background if CPU cores are free, because workers and the loop share them: DataLoader(..., num_workers=1, persistent_workers=True) and torch.set_num_threads(cores - 1)";

/// The least, the likely and the largest part of the loading that workers hide if the CPU computes and
/// nobody knows on how many cores: nothing on one core, half on two, nearly all on many.
const UNKNOWN_CORES: (f64, f64, f64) = (0.0, 0.5, 1.0);

/// The change to try if the time is in the sampler, which always runs in the loop's process.
const WITH_SAMPLER: &str = "workers do not help, because the sampler runs in the loop's process: compute the order before the epoch, with numpy or torch.randperm";

fn check(facts: &Facts<'_>) -> Outcome {
    let is_loading = |id: &&EventId| facts.around(**id).is_loading;
    let loading: Vec<EventId> = facts.events.iter().filter(is_loading).copied().collect();
    // A few slow batches have a rule of their own.
    if loading.is_empty() || super::slow_fetch::explains_waiting(facts) {
        return Outcome::Clean;
    }
    let is_range = |id: &&EventId| facts.profile.event(**id).category == Category::Annotation;
    let ranges: Vec<EventId> = loading.iter().filter(is_range).copied().collect();
    let has_workers = |id: &EventId| facts.name(*id).contains("_MultiProcessingDataLoaderIter");
    let workers = ranges.iter().any(has_workers).then_some(WITH_WORKERS);
    let sampling = facts.inside(&facts.named(&facts.calls, is_sampling));
    let (sampling, fetching): (Vec<EventId>, Vec<EventId>) =
        (loading.into_iter()).partition(|id| sampling[id.index()]);
    let tree = facts.analysis.tree();
    let time = |events: &[EventId]| -> u64 { events.iter().map(|&id| tree.self_time(id).0).sum() };
    // Only one of the two changes is advised, so that only its part of the time has a price.
    let (loading, remedy) = if time(&sampling) > time(&fetching) {
        (sampling, Some(WITH_SAMPLER))
    } else {
        (fetching, workers)
    };
    let blamed = facts.blamed(loading.iter().map(|&id| (id, tree.self_time(id))));
    let mut mending = Mending::default();
    let shares_cores = !facts.has_device && remedy != Some(WITH_SAMPLER);
    if !shares_cores {
        mending.remove(loading);
        return Outcome::Found(Evidence {
            events: ranges,
            mending,
            blame: blamed.map(Blame::Frame),
            remedy,
            ..Evidence::default()
        });
    }
    let cores = recorded_cores(facts.profile.metadata());
    let (low, hidden, high) = cores.map_or(UNKNOWN_CORES, hidden_part);
    // A worker that waits for a disk or a network needs no core.
    let waits = facts.names(|name| name == WAITING_FRAME || blocking_call::is_waiting(name));
    let waits = |id: EventId| waits[facts.profile.event(id).name.index()];
    let waiting: Vec<EventId> = loading.iter().copied().filter(|&id| waits(id)).collect();
    let waited = time(&waiting) as f64 / time(&loading).max(1) as f64;
    for id in loading {
        let left = if waits(id) { 0.0 } else { 1.0 - hidden };
        mending.scale(id, left as f32);
    }
    let [low, hidden, high] = [low, hidden, high].map(|part| waited + (1.0 - waited) * part);
    let range = (hidden > 0.0).then(|| (low / hidden, high / hidden));
    Outcome::Found(Evidence {
        events: ranges,
        mending,
        blame: blamed.map(Blame::Frame),
        remedy: remedy.or(Some(WITHOUT_DEVICE)),
        range,
        confidence: Some(if cores.is_some() {
            Confidence::Medium
        } else {
            Confidence::Low
        }),
        ..Evidence::default()
    })
}

/// Returns the least, the likely and the largest part of the loading that workers hide on so many
/// cores. The loop's threads use all of them, as torch's do by default, so that a worker takes its
/// time from theirs: in the time of one batch on all cores, one core makes the next.
fn hidden_part(cores: f64) -> (f64, f64, f64) {
    let hidden = 1.0 - 1.0 / cores;
    (hidden / 2.0, hidden, (hidden * 1.1).min(1.0))
}

/// Returns the number of cores that the program could use, if it was recorded.
fn recorded_cores(metadata: &Metadata) -> Option<f64> {
    let cores: f64 = metadata.get(CORES)?.parse().ok()?;
    (cores >= 1.0).then_some(cores)
}

/// The key of the number of cores in the metadata of a recording by `mindprof run`.
const CORES: &str = "cpu_cores";

/// Returns whether a call of this name is a data loader's that asks its sampler what comes next.
fn is_sampling(name: &str) -> bool {
    name.contains("torch/utils/data/") && name.ends_with(": _next_index")
}

#[cfg(test)]
mod tests {
    use crate::advice::Confidence;
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
        // Nobody knows how many cores there are.
        assert_saves(&finding, 0.5 * 0.33);
    }

    // A worker that waits takes no time from the loop's cores.
    #[test]
    fn workers_hide_all_of_a_wait() {
        let profile = training(6, |time, _| {
            time.range(NEXT, |time| {
                time.call("data.py(12): read", |time| {
                    time.python("<built-in function sleep>", 500);
                });
            });
            time.op("aten::mm", 1_000);
        });
        let finding = found(profile, "data-loading");
        assert_eq!(blamed(&finding), "read");
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

    fn with_sampler(sampling: u64, fetching: u64) -> mindprof_model::Profile {
        training(6, |time, _| {
            time.range(NEXT, |time| {
                time.call("torch/utils/data/dataloader.py(715): _next_index", |time| {
                    time.python("train.py(12): pick", sampling);
                });
                time.python("data.py(12): augment", fetching);
            });
            time.op("aten::mm", 1_000);
        })
    }

    #[test]
    fn a_slow_sampler_is_no_work_for_workers() {
        let finding = found(with_sampler(500, 100), "data-loading");
        assert_eq!(blamed(&finding), "pick");
        assert!(finding.remedy.contains("order"), "{}", finding.remedy);
        assert_saves(&finding, 500.0 / 1_600.0);
    }

    #[test]
    fn a_sampler_that_takes_less_than_the_samples_is_not_to_blame() {
        let finding = found(with_sampler(100, 500), "data-loading");
        assert_eq!(blamed(&finding), "augment");
        assert!(finding.remedy.contains("num_workers"), "{}", finding.remedy);
        assert_saves(&finding, 0.5 * 500.0 / 1_600.0);
    }

    fn loading_on(cores: Option<&'static str>, device: bool) -> mindprof_model::Profile {
        training(30, move |time, _| {
            if let Some(cores) = cores {
                time.note("cpu_cores", cores);
            }
            time.range(NEXT, |time| time.idle(500));
            time.op("aten::mm", 1_000);
            if device {
                time.compute(1, 100);
            }
        })
    }

    // Workers take a core each. On a device's machine, the loop's core has time to spare.
    #[test]
    fn workers_are_not_sure_to_help_where_the_cpu_computes() {
        let finding = found(loading_on(None, true), "data-loading");
        assert_eq!(finding.confidence, Confidence::High);
        let finding = found(loading_on(None, false), "data-loading");
        assert_eq!(finding.confidence, Confidence::Low);
        assert!(finding.low.abs() < f64::EPSILON, "{}", finding.low);
        assert!((0.3..0.36).contains(&finding.high), "{}", finding.high);
        assert_saves(&finding, 0.5 * 500.0 / 1_500.0);
        assert!(finding.remedy.contains("cores are free"));
    }

    #[test]
    fn the_number_of_cores_tells_what_workers_hide() {
        let finding = found(loading_on(Some("4"), false), "data-loading");
        assert_saves(&finding, 0.75 * 500.0 / 1_500.0);
        assert_eq!(finding.confidence, Confidence::Medium);
        assert!(finding.low > 0.1 && finding.high < 0.3);
        // A single core has no time to spare.
        assert_eq!(
            outcome(loading_on(Some("1"), false), "data-loading"),
            "clean"
        );
        assert_eq!(
            outcome(loading_on(Some("x"), false), "data-loading"),
            "found"
        );
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
