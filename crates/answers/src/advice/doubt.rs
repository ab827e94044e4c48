//! Replays that do not explain the recording, so that they price nothing.
//!
//! An NPU's operators may queue their tasks, and a thread without operators launches them. The replay
//! follows that thread if it is one and the recording shows the queue. Otherwise it may let kernels
//! begin before they could be launched. The same happens if a recording lacks the links between
//! launches and kernels.

use mindprof_model::{Category, EventId, Profile};
use rustc_hash::FxHashMap;

use crate::replay::Replay;

/// The reasons why rules that need the replay cannot tell.
const QUEUED: &str =
    "a queue of tasks launches the kernels, and a replay does not explain its delays";
const UNFAITHFUL: &str =
    "a replay takes more than 25 % more or less time than the recording, so that it prices nothing";

/// The part of kernels that a queue launches, from which it matters.
const MANY: f64 = 0.2;

/// Returns why the replay prices nothing, or `None` if it takes about as long as the recording.
pub(super) fn doubt(profile: &Profile, replay: &Replay) -> Option<&'static str> {
    if replay.is_faithful() {
        return None;
    }
    Some(if queued_part(profile) > MANY {
        QUEUED
    } else {
        UNFAITHFUL
    })
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
