//! Launches by threads that the replay does not follow.
//!
//! An NPU's operators may queue their tasks, and a thread without operators launches them. The replay
//! follows that thread if it is one and the recording shows the queue. Otherwise it may let kernels
//! begin before they could be launched.

use mindprof_model::{Category, EventId, Nanos, Profile};
use rustc_hash::FxHashMap;

use crate::replay::Replay;

/// The reason why rules that need the replay cannot tell.
pub(super) const NOT_REPLAYED: &str =
    "a queue of tasks launches the kernels, and a replay does not explain its delays";

/// The part of kernels that a queue launches, from which it matters.
const MANY: f64 = 0.2;

/// The part of the recorded time that the replay has to explain, at least and at most.
const EXPLAINED: std::ops::Range<f64> = 0.8..1.25;

/// Returns whether a queue launches kernels, and the replay takes another time than the recording.
pub(super) fn is_misled(profile: &Profile, replay: &Replay) -> bool {
    let recorded = recorded(replay).0 as f64;
    let replayed = replay.recorded().total().0 as f64;
    !EXPLAINED.contains(&(replayed / recorded.max(1.0))) && queued_part(profile) > MANY
}

/// Returns the time of all steps.
pub(super) fn recorded(replay: &Replay) -> Nanos {
    let steps = replay.steps().iter();
    Nanos(steps.map(|step| step.end().0 - step.start.0).sum())
}

/// Returns the part of kernels that threads without operators launch.
fn queued_part(profile: &Profile) -> f64 {
    let mut has_operators = vec![false; profile.threads().len()];
    for event in profile.events() {
        has_operators[event.thread.index()] |= event.category == Category::Operator;
    }
    let correlation = |index| {
        let links = profile.links(EventId::from_index(index));
        links.map_or(0, |links| links.correlation)
    };
    let mut is_queued: FxHashMap<u32, bool> = FxHashMap::default();
    for (index, event) in profile.events().iter().enumerate() {
        if event.category == Category::Runtime {
            is_queued.insert(correlation(index), !has_operators[event.thread.index()]);
        }
    }
    is_queued.remove(&0);
    let (mut kernels, mut queued) = (0_u64, 0_u64);
    for (index, event) in profile.events().iter().enumerate() {
        if event.category == Category::Kernel {
            kernels += 1;
            let is_queued = is_queued.get(&correlation(index)).copied();
            queued += u64::from(is_queued.unwrap_or(false));
        }
    }
    queued as f64 / kernels.max(1) as f64
}
