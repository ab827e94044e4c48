//! The paths of a flame graph as columns: a tree of frames with the amount that was spent at each.

use mindprof_analyze::{Analysis, Folded, MemoryPeak, StackMetric};
use mindprof_answers::{Pictures, Work};
use mindprof_model::{Event, Nanos, ScopeKind, StackId, ThreadId, is_backward_wrapper};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::columns::Columns;
use super::strings::Strings;

/// The largest number of levels, and the part of the whole that a frame needs to be kept.
const LEVELS: usize = 200;
const PARTS: u64 = 20_000;

/// The names of the columns of each picture: callers, frames and amounts.
type Names = [&'static str; 3];

const CPU: Names = ["cpu_caller", "cpu_frame", "cpu_amount"];
const DEVICE: Names = ["device_caller", "device_frame", "device_amount"];
const MEMORY: Names = ["memory_caller", "memory_frame", "memory_amount"];

/// Writes the pictures that the profile has data for, and returns their list.
pub(super) fn write_flames(
    analysis: &Analysis,
    work: &Work,
    columns: &mut Columns,
    strings: &mut Strings,
) -> Value {
    let mut pictures = Vec::new();
    let metrics = [
        (StackMetric::SelfCpuTime, CPU, "cpu", "CPU time"),
        (StackMetric::SelfDeviceTime, DEVICE, "device", "Device time"),
    ];
    for (metric, names, id, title) in metrics {
        if metric == StackMetric::SelfDeviceTime && analysis.accelerator().is_none() {
            continue;
        }
        let folded = Folded::build(analysis, metric);
        let shown = Pictures::new(&folded, work).work;
        if shown.total() > Nanos::ZERO {
            let waits = metric == StackMetric::SelfCpuTime && has_backward_thread(analysis);
            write_folded(&shown, names, waits, columns, strings);
            pictures.push(json!({"id": id, "title": title, "kind": "time"}));
        }
    }
    let timeline = analysis.has_memory().then(|| analysis.memory_timeline());
    let place = timeline.and_then(|timeline| timeline.places_by_peak(analysis).first().copied());
    if let Some(place) = place {
        let peak = analysis.memory_timeline().peak(analysis, place);
        if !peak.holders.is_empty() {
            write_held(analysis, &peak, columns, strings);
            pictures.push(json!({"id": "memory", "title": "Memory at the peak", "kind": "bytes"}));
        }
    }
    json!(pictures)
}

/// The frame below a call that waits until another thread has done the backward work. `flame_pane.js`
/// has the same.
const WAITING: &str = "waiting for the backward thread";

/// The C function in which a thread starts backward work, or waits for it.
const ENGINE: &str = "run_backward";

/// Returns whether a thread does backward work for another one, which waits for it meanwhile.
///
/// ```text
/// main thread       |----run_backward----|
/// backward thread      |--MulBackward0--|
/// ```
fn has_backward_thread(analysis: &Analysis) -> bool {
    let profile = analysis.profile();
    let events = || profile.events().iter();
    let engines = events().filter(|event| profile.name(event).contains(ENGINE));
    let callers: FxHashSet<ThreadId> = engines.map(|event| event.thread).collect();
    let is_backward = |event: &Event| {
        event.scope == ScopeKind::Backward || is_backward_wrapper(profile.name(event))
    };
    !callers.is_empty()
        && events().any(|event| !callers.contains(&event.thread) && is_backward(event))
}

fn write_folded(
    folded: &Folded<'_>,
    names: Names,
    waits: bool,
    columns: &mut Columns,
    strings: &mut Strings,
) {
    let cut = folded.cut(LEVELS, Nanos(folded.total().0 / PARTS));
    let mut tree = FlameTree::default();
    for (path, weight) in cut.iter() {
        let frames = cut.frames(path).into_iter();
        let mut frames: Vec<&str> = frames.map(|frame| cut.strings().text(frame)).collect();
        if waits && frames.last().is_some_and(|name| name.contains(ENGINE)) {
            frames.push(WAITING);
        }
        tree.add(
            frames.into_iter().map(|name| strings.number(name)),
            weight.0,
        );
    }
    tree.write(names, columns);
}

/// Writes who holds memory at the peak: the stack of the allocation, and what allocated it.
fn write_held(
    analysis: &Analysis,
    peak: &MemoryPeak,
    columns: &mut Columns,
    strings: &mut Strings,
) {
    let profile = analysis.profile();
    let mut tree = FlameTree::default();
    for holder in &peak.holders {
        let mut frames: Vec<u32> = Vec::new();
        if holder.stack != StackId::NONE {
            let stack = profile.stacks().frames(holder.stack);
            frames.extend(stack.map(|frame| strings.number(profile.strings().text(frame))));
            frames.reverse();
        }
        let name = mindprof_formats::holder_name(analysis, holder);
        frames.push(strings.number(&name));
        tree.add(frames.into_iter().take(LEVELS), holder.bytes);
    }
    tree.write(MEMORY, columns);
}

/// A tree of frames. Number zero is the root, and callers precede what they call.
struct FlameTree {
    nodes: FxHashMap<(u32, u32), u32>,
    callers: Vec<u64>,
    frames: Vec<u64>,
    amounts: Vec<u64>,
}

impl Default for FlameTree {
    fn default() -> Self {
        Self {
            nodes: FxHashMap::default(),
            callers: vec![0],
            frames: vec![0],
            amounts: vec![0],
        }
    }
}

impl FlameTree {
    fn add(&mut self, frames: impl Iterator<Item = u32>, amount: u64) {
        let mut at = 0;
        for frame in frames {
            let next = self.callers.len() as u32;
            let node = *self.nodes.entry((at, frame)).or_insert(next);
            if node == next {
                self.callers.push(u64::from(at));
                self.frames.push(u64::from(frame));
                self.amounts.push(0);
            }
            at = node;
        }
        self.amounts[at as usize] += amount;
    }

    fn write(&self, [caller, frame, amount]: Names, columns: &mut Columns) {
        columns.push_differences(caller, &self.callers);
        columns.push(frame, &self.frames);
        columns.push(amount, &self.amounts);
    }
}
