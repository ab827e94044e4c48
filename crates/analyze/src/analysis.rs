//! A profile together with everything that is derived from it, each part computed once.

use std::sync::OnceLock;

use mindprof_model::{
    Category, DeviceKind, EventId, Flags, ForwardThread, MemoryRecord, Nanos, Profile, StackId,
    ThreadNumbers,
};

use rustc_hash::FxHashMap;

use crate::links::correlate::Correlation;
use crate::links::device_time::DeviceTimes;
use crate::links::flows::Flows;
use crate::memory::host_totals::HostTotals;
use crate::memory::memory_timeline::MemoryTimeline;
use crate::memory::memory_use::{Bytes, MemoryUse};
use crate::rows::keys::{Keys, OUT_OF_MEMORY_KEY};
use crate::stacks::source::Sources;
use crate::tree::children::Children;
use crate::tree::event_tree::Tree;
use crate::tree::python_calls::{PythonCall, PythonCalls};

/// Metadata keys under which a recording notes the options that it was made with.
const OPTION_FLOPS: &str = "with_flops";
const OPTION_MEMORY: &str = "profile_memory";

/// A profile with its event tree, device times, memory use and everything else derived from it.
///
/// Most functions of this crate take an `Analysis`, so that tables, files and the Python package
/// share one tree and agree on every number. Cheap and common parts are computed by
/// [`Self::build`]; the others (stacks, flow events, the memory timeline, …) on first use, which is
/// safe from several threads.
#[derive(Clone, Debug)]
pub struct Analysis {
    profile: Profile,
    keys: Keys,
    correlation: Correlation,
    tree: Tree,
    device_times: DeviceTimes,
    memory: MemoryUse,
    sources: OnceLock<Sources>,
    charged: OnceLock<Sources>,
    thread_numbers: ThreadNumbers,
    flows: OnceLock<Flows>,
    children: OnceLock<Children>,
    kernels: OnceLock<Kernels>,
    memory_timeline: OnceLock<MemoryTimeline>,
    host_totals: OnceLock<HostTotals>,
    python_calls: OnceLock<FxHashMap<EventId, PythonCall>>,
    accelerator: Option<DeviceKind>,
}

impl Analysis {
    /// Analyzes a profile in time linear in the number of events, and `n log n` for memory.
    pub fn build(profile: Profile) -> Self {
        let keys = Keys::build(profile.strings());
        let correlation = Correlation::build(&profile);
        let tree = Tree::build(&profile, &keys, &correlation);
        Self {
            device_times: DeviceTimes::build(
                &profile,
                &tree,
                || Children::build(&tree),
                &correlation,
            ),
            memory: MemoryUse::build(&profile, &tree),
            sources: OnceLock::new(),
            charged: OnceLock::new(),
            thread_numbers: profile.thread_numbers(),
            flows: OnceLock::new(),
            children: OnceLock::new(),
            kernels: OnceLock::new(),
            memory_timeline: OnceLock::new(),
            host_totals: OnceLock::new(),
            python_calls: OnceLock::new(),
            accelerator: accelerator(&profile),
            keys,
            correlation,
            tree,
            profile,
        }
    }

    /// Returns the profile.
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the event tree.
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the children of each event. The first call computes them.
    pub fn children(&self) -> &Children {
        self.children.get_or_init(|| Children::build(&self.tree))
    }

    /// Returns the numbers of a Python function call, or `None` if the event is not one. The first
    /// call numbers all of them.
    pub fn python_call(&self, id: EventId) -> Option<PythonCall> {
        let calls = self
            .python_calls
            .get_or_init(|| PythonCalls::collect(&self.profile));
        calls.get(&id).copied()
    }

    /// Returns the keys under which events are grouped.
    pub const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the operators and ranges that kernels and runtime calls belong to.
    pub const fn correlation(&self) -> &Correlation {
        &self.correlation
    }

    /// Returns the time that devices spent on behalf of each CPU event.
    pub const fn device_times(&self) -> &DeviceTimes {
        &self.device_times
    }

    /// Returns the memory that CPU events allocated and freed.
    pub const fn memory(&self) -> &MemoryUse {
        &self.memory
    }

    /// Returns the blocks of memory over time, with their categories. The first call computes them.
    pub fn memory_timeline(&self) -> &MemoryTimeline {
        let build = || MemoryTimeline::build(self);
        self.memory_timeline.get_or_init(build)
    }

    /// Returns the totals of the CPU allocator over time. The first call collects them.
    pub fn host_totals(&self) -> &HostTotals {
        let build = || HostTotals::build(&self.profile);
        self.host_totals.get_or_init(build)
    }

    /// Returns the stack to show for an event. The first call finds the stacks of all events.
    pub fn stack(&self, id: EventId) -> StackId {
        let build = || Sources::build(&self.profile, &self.tree, &self.correlation);
        self.sources.get_or_init(build).stack(&self.profile, id)
    }

    /// Returns the stack that the cost of an event is charged to: for backward work that of the
    /// operator that made the backward node, which [`Self::stack`] misses if other operators had
    /// the same sequence number before it. The first call finds the stacks of all events.
    pub fn charged_stack(&self, id: EventId) -> StackId {
        let build = || Sources::build_of_makers(&self.profile, &self.tree, &self.correlation);
        self.charged.get_or_init(build).stack(&self.profile, id)
    }

    /// Returns the kind of device that an event ran on.
    pub fn device(&self, id: EventId) -> DeviceKind {
        let thread = self.profile.event(id).thread;
        self.profile.threads()[thread.index()].device
    }

    /// Returns the CPU time of an event, which is zero if it ran on a device.
    pub(crate) fn cpu_time(&self, id: EventId) -> Nanos {
        if self.device(id) == DeviceKind::Cpu {
            self.profile.event(id).duration
        } else {
            Nanos::ZERO
        }
    }

    /// Returns the number of an event's thread. CPU threads are numbered from one in the order in
    /// which they began to work.
    pub fn thread_number(&self, id: EventId) -> u32 {
        let thread = self.correlation.thread(&self.profile, id);
        self.thread_numbers.number(thread)
    }

    /// Returns the number of a memory record's thread.
    pub fn memory_thread_number(&self, record: &MemoryRecord) -> u32 {
        self.thread_numbers.number(record.thread)
    }

    /// Returns the number of the thread on which the forward operator of a backward node ran. Zero
    /// if the event is not a backward node.
    pub fn forward_thread_number(&self, id: EventId) -> u32 {
        let links = self.profile.links(id).unwrap_or_default();
        let forward = match links.forward_thread() {
            ForwardThread::Unknown => {
                let found = self.flows().forward_thread(&self.profile, id);
                found.unwrap_or_default()
            }
            told @ (ForwardThread::Elsewhere | ForwardThread::At(_)) => told,
        };
        self.thread_numbers.forward_number(forward)
    }

    /// Returns the flow events. The first call finds them.
    pub fn flows(&self) -> &Flows {
        self.flows.get_or_init(|| Flows::build(&self.profile))
    }

    /// Returns the kernels that an event itself launched, in start order. The first call sorts the
    /// kernels of the profile by owner.
    pub fn kernels(&self, id: EventId) -> &[EventId] {
        let kernels = self.kernels.get_or_init(|| self.kernels_by_owner());
        let begin = kernels.owners.partition_point(|&owner| owner < id);
        let end = kernels.owners.partition_point(|&owner| owner <= id);
        &kernels.kernels[begin..end]
    }

    /// Sorts kernels by owner.
    ///
    /// The kernels of a merged duplicate replace those of the event that it was merged into, as in
    /// torch.
    fn kernels_by_owner(&self) -> Kernels {
        let ids = || (0..self.profile.events().len()).map(EventId::from_index);
        let merged = ids().filter(|&id| self.tree.is_merged(id));
        let givers: FxHashMap<EventId, EventId> = merged
            .filter_map(|id| Some((self.tree.parent(id)?, id)))
            .collect();
        let mut pairs: Vec<(EventId, EventId)> = ids()
            .filter(|&id| self.profile.event(id).category == Category::Kernel)
            .filter_map(|id| {
                let owner = self.correlation.owner(id)?;
                let shown = match self.tree.parent(owner) {
                    Some(parent) if self.tree.is_merged(owner) => parent,
                    Some(_) | None => owner,
                };
                let giver = givers.get(&shown).copied().unwrap_or(shown);
                (giver == owner).then_some((shown, id))
            })
            .collect();
        pairs.sort_unstable();
        let (owners, kernels) = pairs.into_iter().unzip();
        Kernels { owners, kernels }
    }

    /// Returns the kind of the first device other than the CPU that has events or memory records.
    pub const fn accelerator(&self) -> Option<DeviceKind> {
        self.accelerator
    }

    /// Returns whether the recording was asked to count floating-point operations (`with_flops`).
    pub fn counts_flops(&self) -> bool {
        self.was_asked_for(OPTION_FLOPS)
    }

    /// Returns whether the recording was asked for memory (`profile_memory`) or has memory records.
    pub fn has_memory(&self) -> bool {
        self.was_asked_for(OPTION_MEMORY) || !self.profile.memory().is_empty()
    }

    /// Returns whether an event is shown, that is, neither hidden nor merged into another one.
    pub fn is_shown(&self, id: EventId) -> bool {
        let hidden = self.profile.event(id).flags.contains(Flags::HIDDEN);
        !hidden && !self.tree.is_merged(id)
    }

    /// Returns whether [`Self::items`] yields every event and no memory record.
    pub fn shows_every_event(&self) -> bool {
        self.tree.shows_all() && self.memory.unclaimed().is_empty()
    }

    /// Iterates over everything that is shown, in time order: events, and memory records that lie
    /// inside no event.
    pub fn items(&self) -> impl Iterator<Item = Item> {
        let events = self.profile.events();
        let mut loose = self.memory.unclaimed().iter().peekable();
        let mut next = 0;
        std::iter::from_fn(move || {
            while next < events.len() && !self.is_shown(EventId::from_index(next)) {
                next += 1;
            }
            let before = |record: u32| {
                let time = self.profile.memory().time(record as usize);
                events.get(next).is_none_or(|event| time < event.start)
            };
            if let Some(&record) = loose.next_if(|record| before(**record)) {
                return Some(Item::Memory(record));
            }
            let id = (next < events.len()).then(|| EventId::from_index(next))?;
            next += 1;
            Some(Item::Event(id))
        })
    }

    /// Returns whether an event marks a failed allocation, which torch calls `[OutOfMemory]`.
    pub fn is_out_of_memory(&self, id: EventId) -> bool {
        let event = self.profile.event(id);
        event.category == Category::Other && self.profile.name(event) == OUT_OF_MEMORY_KEY
    }

    /// Returns whether an event is a range that the user named.
    pub fn is_annotation(&self, id: EventId) -> bool {
        is_annotation(self.profile.event(id).category)
    }

    fn was_asked_for(&self, option: &str) -> bool {
        self.profile.metadata().get(option) == Some("1")
    }
}

/// An entry of the list of events that torch would show.
///
/// torch lists memory records outside all events as events of their own, so an entry is either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event(EventId),
    /// A memory record that lies inside no event, by its position in the profile's records.
    Memory(u32),
}

pub(crate) fn is_annotation(category: Category) -> bool {
    matches!(category, Category::Annotation | Category::DeviceAnnotation)
}

/// Kernels with their owners, sorted by owner. Two parallel columns, searched by bisection.
#[derive(Clone, Debug, Default)]
struct Kernels {
    owners: Vec<EventId>,
    kernels: Vec<EventId>,
}

/// Returns the kind of the first device other than the CPU that has events or memory records.
fn accelerator(profile: &Profile) -> Option<DeviceKind> {
    let kinds = profile.threads().iter().map(|thread| thread.device);
    let blocks = profile.memory().iter();
    let blocks = blocks.filter(|record| Bytes::of(record).device != 0);
    kinds
        .chain(blocks.map(|record| record.device))
        .find(|&kind| kind != DeviceKind::Cpu)
}
