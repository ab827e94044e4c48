//! Splits the wall time of steps into exclusive classes that sum to each step exactly.
//!
//! Each moment of a step belongs to the first class, in the order of [`StepClass::ALL`], that
//! anything running at that moment is of. Device work thus hides the CPU work beside it, and idle
//! time is the time that nothing explains.

use mindprof_analyze::Analysis;
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Nanos, Profile, ScopeKind, ThreadId, WAITING_FRAME,
};
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::steps::Step;
use crate::work_classes::WorkClasses;

/// A class of the time of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepClass {
    /// A device computes.
    Kernel,
    /// A device copies memory.
    Copy,
    /// A device fills memory.
    Memset,
    /// A device or the CPU exchanges data with other ranks.
    Communication,
    /// The CPU is in a call of the device's runtime or driver.
    Runtime,
    /// The loop gets its next batch from a data loader.
    DataLoading,
    /// The CPU runs operators, forward or backward.
    Operators,
    /// The loop's thread runs Python code outside of operators.
    Python,
    /// The loop's thread waits, or nothing was recorded.
    Idle,
}

impl StepClass {
    /// Every class, the one that counts first at the front.
    pub const ALL: [Self; 9] = [
        Self::Kernel,
        Self::Copy,
        Self::Memset,
        Self::Communication,
        Self::Runtime,
        Self::DataLoading,
        Self::Operators,
        Self::Python,
        Self::Idle,
    ];

    /// Returns the name of the class.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Copy => "copy",
            Self::Memset => "memset",
            Self::Communication => "communication",
            Self::Runtime => "runtime",
            Self::DataLoading => "data loading",
            Self::Operators => "operators",
            Self::Python => "Python",
            Self::Idle => "idle",
        }
    }

    /// Returns the class of device work with this name: kernel, copy, memset or communication.
    pub fn of_device_work(name: &str) -> Self {
        NameKind::of(name).device_class()
    }

    /// Returns the key of the class in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Kernel => "kernel_us",
            Self::Copy => "copy_us",
            Self::Memset => "memset_us",
            Self::Communication => "communication_us",
            Self::Runtime => "runtime_us",
            Self::DataLoading => "data_loading_us",
            Self::Operators => "operators_us",
            Self::Python => "python_us",
            Self::Idle => "idle_us",
        }
    }
}

/// The time of each class in a step, or in several steps together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepSplit {
    times: [Nanos; StepClass::ALL.len()],
}

impl StepSplit {
    /// Returns the time of a class.
    pub const fn time(&self, class: StepClass) -> Nanos {
        self.times[class as usize]
    }

    /// Iterates over the classes and their times, in the order of [`StepClass::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (StepClass, Nanos)> {
        StepClass::ALL.into_iter().zip(self.times)
    }

    /// Returns the sum of all classes, which is the duration of the steps.
    pub fn total(&self) -> Nanos {
        Nanos(self.times.iter().map(|time| time.0).sum())
    }

    pub(crate) fn add(&mut self, class: StepClass, time: Nanos) {
        let sum = &mut self.times[class as usize];
        *sum = *sum + time;
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        for (class, time) in other.iter() {
            self.add(class, time);
        }
    }
}

impl Serialize for StepSplit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(StepClass::ALL.len()))?;
        for (class, time) in self.iter() {
            map.serialize_entry(class.key(), &mindprof_analyze::microseconds(time))?;
        }
        map.end()
    }
}

/// Splits each step, in time linear in the number of events and steps. `loop_thread` is the thread
/// that makes the steps.
pub(crate) fn split(analysis: &Analysis, steps: &[Step], loop_thread: ThreadId) -> Vec<StepSplit> {
    let ranges = Ranges::collect(analysis, loop_thread);
    let mut splits = vec![StepSplit::default(); steps.len()];
    for lane in lanes(steps) {
        let mut slots: Vec<Slot> = lane
            .iter()
            .map(|&step| Slot {
                begin: steps[step].start,
                end: steps[step].end(),
                step,
            })
            .collect();
        for (class, ranges) in &ranges.by_class {
            slots = take(&slots, ranges, |step, time| splits[step].add(*class, time));
        }
        for slot in slots {
            splits[slot.step].add(StepClass::Idle, slot.end.saturating_sub(slot.begin));
        }
    }
    splits
}

/// Groups steps so that those of one group do not overlap. Steps of one loop never do.
fn lanes(steps: &[Step]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by_key(|&step| (steps[step].start, steps[step].end()));
    let mut lanes: Vec<Vec<usize>> = Vec::new();
    for step in order {
        let is_free = |lane: &&mut Vec<usize>| {
            let last = lane.last().map(|&last| steps[last].end());
            last.is_none_or(|end| end <= steps[step].start)
        };
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.push(step),
            None => lanes.push(vec![step]),
        }
    }
    lanes
}

/// A part of a step that no class has taken yet.
#[derive(Clone, Copy, Debug)]
struct Slot {
    begin: Nanos,
    end: Nanos,
    step: usize,
}

/// Takes the time of some ranges out of slots, reports it by step, and returns what is left. Slots
/// and ranges are sorted and do not overlap among themselves.
///
/// ```text
/// slots    |----------|   |------|
/// ranges      |--|       |---|
/// left     |--|  |----|      |---|
/// ```
fn take(
    slots: &[Slot],
    ranges: &[(Nanos, Nanos)],
    mut report: impl FnMut(usize, Nanos),
) -> Vec<Slot> {
    let mut left = Vec::with_capacity(slots.len());
    let mut next = 0;
    for slot in slots {
        while ranges.get(next).is_some_and(|&(_, end)| end <= slot.begin) {
            next += 1;
        }
        let mut begin = slot.begin;
        // The last range of a slot may reach into the next slot, so it is not used up.
        for &(from, to) in &ranges[next..] {
            if from >= slot.end {
                break;
            }
            let (from, to) = (from.max(begin), to.min(slot.end));
            if from > begin {
                left.push(Slot {
                    begin,
                    end: from,
                    ..*slot
                });
            }
            report(slot.step, to.saturating_sub(from));
            begin = begin.max(to);
            if to < slot.end {
                next += 1;
            }
        }
        if begin < slot.end {
            left.push(Slot { begin, ..*slot });
        }
    }
    left
}

/// The times at which each class runs, as sorted ranges that do not overlap.
struct Ranges {
    by_class: Vec<(StepClass, Vec<(Nanos, Nanos)>)>,
}

impl Ranges {
    fn collect(analysis: &Analysis, loop_thread: ThreadId) -> Self {
        let profile = analysis.profile();
        let names: Vec<NameKind> = profile.strings().iter().map(NameKind::of).collect();
        let works = WorkClasses::build(profile);
        let is_counted = counted_threads(profile, loop_thread);
        // Waits are idle time, and come before the Python code around them.
        let order = [&StepClass::ALL[..7], &[StepClass::Idle, StepClass::Python]].concat();
        let mut by_class: Vec<_> = order.into_iter().map(|class| (class, Vec::new())).collect();
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            if !is_counted[event.thread.index()] || !analysis.is_shown(id) {
                continue;
            }
            let is_loop = event.thread == loop_thread;
            let is_device = analysis.device(id) != DeviceKind::Cpu;
            let kind = names[event.name.index()];
            let class = if event.category == Category::Kernel {
                Some(works.of(id, event))
            } else {
                class(event, kind, is_device, is_loop)
            };
            if let Some(class) = class {
                let ranges = by_class.iter_mut().find(|(of, _)| *of == class);
                let (_, ranges) = ranges.expect("the order has every class");
                push(ranges, event.start, event.end());
            }
        }
        Self { by_class }
    }
}

/// Adds a range to others that began earlier.
fn push(ranges: &mut Vec<(Nanos, Nanos)>, begin: Nanos, end: Nanos) {
    match ranges.last_mut() {
        Some((_, last)) if begin <= *last => *last = (*last).max(end),
        Some(_) | None if begin < end => ranges.push((begin, end)),
        Some(_) | None => {}
    }
}

/// Returns for each thread whether its events belong to the loop's process: its threads, and the
/// streams of its devices. Other processes, such as data loader workers, run beside it.
fn counted_threads(profile: &Profile, loop_thread: ThreadId) -> Vec<bool> {
    let process = profile.threads()[loop_thread.index()].process;
    let origin = profile.origin(loop_thread);
    let threads = profile.threads().iter().enumerate();
    threads
        .map(|(index, thread)| {
            let is_near = thread.device != DeviceKind::Cpu || thread.process == process;
            is_near && profile.origin(ThreadId::from_index(index)) == origin
        })
        .collect()
}

/// Returns the class of an event of the CPU.
fn class(event: &Event, kind: NameKind, is_device: bool, is_loop: bool) -> Option<StepClass> {
    let is_backward = event.scope == ScopeKind::Backward;
    match event.category {
        _ if is_device => None,
        Category::Runtime => Some(StepClass::Runtime),
        Category::Operator | Category::Annotation if kind == NameKind::Communication => {
            Some(StepClass::Communication)
        }
        Category::Operator | Category::Annotation if kind == NameKind::Batch && is_loop => {
            Some(StepClass::DataLoading)
        }
        // Backward work on another thread is what the loop waits for.
        Category::Operator if is_loop || is_backward => Some(StepClass::Operators),
        Category::PythonFunction if is_loop && kind == NameKind::Wait => Some(StepClass::Idle),
        Category::PythonFunction if is_loop => Some(StepClass::Python),
        Category::Operator
        | Category::Annotation
        | Category::PythonFunction
        | Category::Kernel
        | Category::DeviceAnnotation
        | Category::Other => None,
    }
}

/// The class that the name of an event implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    Communication,
    Copy,
    Memset,
    Batch,
    Wait,
    Other,
}

/// The beginnings of the names of collectives: kernels, and ranges and operators of the CPU.
const COMMUNICATION: [&str; 16] = [
    "ncclDevKernel",
    "ncclKernel",
    "ncclSymDevKernel",
    "ncclSymkDevKernel",
    "mscclKernel",
    "oneCCL",
    "nccl:",
    "gloo:",
    "mpi:",
    "ucc:",
    "xccl:",
    "hccl:",
    "hcom_",
    "rccl",
    "c10d::",
    "_c10d_functional::",
];

/// Parts of the names of kernels with which libraries other than NCCL exchange data: vLLM, torch's
/// symmetric memory, `FlashInfer` and NVSHMEM. Namespaces and return types stand before them.
const COMMUNICATION_PARTS: [&str; 5] = [
    "cross_device_reduce",
    "_shot_all_reduce",
    "multimem_all_",
    "allreduce_fusion_kernel",
    "nvshmem_",
];

/// The beginnings of the names of ranges in which a loop gets its next batch.
const BATCHES: [&str; 2] = ["enumerate(DataLoader)#", "enumerate(DataPipe)#"];

/// C functions in which a thread waits for time to pass, for a lock or for a file.
const WAITS: [&str; 9] = [
    "sleep", "acquire", "select", "poll", "epoll", "wait", "waitpid", "recv", "accept",
];

impl NameKind {
    pub(crate) fn of(name: &str) -> Self {
        let begins = |with: &[&str]| with.iter().any(|prefix| name.starts_with(prefix));
        let exchanges = || COMMUNICATION_PARTS.iter().any(|part| name.contains(part));
        if begins(&COMMUNICATION) || name == "record_param_comms" || exchanges() {
            Self::Communication
        } else if begins(&["Memcpy", "[CUDA memcpy", "dma_request", "MEMCPY_"]) {
            Self::Copy
        } else if begins(&["Memset", "[CUDA memset"]) {
            Self::Memset
        } else if begins(&BATCHES) {
            Self::Batch
        } else if is_wait(name) {
            Self::Wait
        } else {
            Self::Other
        }
    }

    const fn device_class(self) -> StepClass {
        match self {
            Self::Communication => StepClass::Communication,
            Self::Copy => StepClass::Copy,
            Self::Memset => StepClass::Memset,
            Self::Batch | Self::Wait | Self::Other => StepClass::Kernel,
        }
    }
}

fn is_wait(name: &str) -> bool {
    if name == WAITING_FRAME {
        return true;
    }
    let Some(rest) = name.strip_prefix("<built-in ") else {
        return false;
    };
    let mut words = rest.trim_end_matches('>').split(' ');
    let function = words.nth(1).unwrap_or("");
    let function = function.rsplit('.').next().unwrap_or(function);
    WAITS.contains(&function)
}

#[cfg(test)]
mod tests;
