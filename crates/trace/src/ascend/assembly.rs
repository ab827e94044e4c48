//! Puts the rows of a profile's tables together: events with threads, in the order of a profile.
//!
//! The readers of databases and of CSV files add rows table by table, and `into_reading` sorts them.

use std::hash::{Hash, Hasher};

use mindprof_model::{
    Category, DeviceKind, Event, EventBatch, InputsEncoder, InputsId, LinkColumns, LossCause,
    Metadata, Nanos, Part, PassthroughKind, StringId, TextId, Thread, ThreadId, ThreadNumbers,
};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::memory::NpuMemory;
use super::shapes::encode_inputs;
use crate::chrome::{find_order, reorder};
use crate::phase_counts::PhaseCounts;
use crate::reading::PartReading;
use crate::repairs::{Repair, Repairs};

/// The latest time that is accepted, half the range as in traces.
pub(super) const LATEST_NS: i64 = i64::MAX / 2;

/// The start of the year 2000. No profiler of NPUs recorded before it.
const YEAR_2000: Nanos = Nanos(946_684_800_000_000_000);
/// The longest plausible recording: 30 days. Events that are farther away from most have a wrong time.
const LONGEST: Nanos = Nanos(30 * 24 * 3600 * 1_000_000_000);

/// The events so far. Their starts are nanoseconds since the Unix epoch until all are known.
#[derive(Default)]
pub(super) struct Assembly {
    pub(super) part: Part,
    pub(super) events: Vec<Event>,
    /// By event, the id that ties it to others, or zero.
    pub(super) connections: Vec<u32>,
    /// By event, the number of its task, or zero.
    tasks: Vec<u32>,
    pub(super) links: LinkColumns,
    pub(super) repairs: Repairs,
    pub(super) memory: NpuMemory,
    threads: FxHashMap<(DeviceKind, u64, u64), ThreadId>,
    groups: FxHashMap<(u64, StringId), ThreadId>,
    inputs: FxHashMap<(StringId, StringId), InputsId>,
    encoder: InputsEncoder,
}

/// One row that becomes an event. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) category: Category,
    pub(super) name: StringId,
    pub(super) thread: ThreadId,
    pub(super) start_ns: Option<i64>,
    pub(super) end_ns: Option<i64>,
    /// The id that ties the event to others, or zero.
    pub(super) connection: u32,
    /// A number that tells a task from others at the same time on its stream, or zero if the event is
    /// no task.
    pub(super) task: u32,
}

/// Returns a number for the ids of a task.
pub(super) fn task_number(ids: impl Hash) -> u32 {
    let mut hasher = FxHasher::default();
    ids.hash(&mut hasher);
    // The upper bits are the better ones.
    (hasher.finish() >> 32) as u32 | 1
}

impl Assembly {
    /// Reserves room for so many events.
    pub(super) fn reserve(&mut self, events: usize) {
        // If the reservation fails, the rows grow as they come.
        let _ = self.events.try_reserve_exact(events);
        let _ = self.connections.try_reserve_exact(events);
        let _ = self.tasks.try_reserve_exact(events);
    }

    /// Adds an event and returns it, or counts it as lost if it has no time.
    pub(super) fn add(&mut self, row: Row) -> Option<&mut Event> {
        let is_time = |time: &i64| (0..=LATEST_NS).contains(time);
        let (Some(start), Some(end)) = (
            row.start_ns.filter(is_time),
            row.end_ns.filter(|end| *end <= LATEST_NS),
        ) else {
            self.repairs.add(Repair::NoTime, 1);
            self.part.add_loss(LossCause::Damaged, 1);
            return None;
        };
        if end < start {
            self.repairs.add(Repair::NegativeDuration, 1);
        }
        let duration = Nanos(end.saturating_sub(start).max(0) as u64);
        let start = Nanos(start as u64);
        let event = Event::new(row.category, row.name, row.thread, start, duration);
        self.events.push(event);
        self.connections.push(row.connection);
        self.tasks.push(row.task);
        self.events.last_mut()
    }

    /// Returns a thread of the program, or a stream of a device.
    pub(super) fn thread(&mut self, device: DeviceKind, process: u64, native: u64) -> ThreadId {
        let part = &mut self.part;
        let add = || {
            let kind = if device == DeviceKind::Cpu {
                "Thread"
            } else {
                "Stream"
            };
            let name = part.strings.intern(&format!("{kind} {native}"));
            part.add_thread(Thread {
                process,
                native,
                name,
                device,
            })
        };
        *self
            .threads
            .entry((device, process, native))
            .or_insert_with(add)
    }

    /// Returns the track of a group of ranks, which runs collectives on streams of its own.
    pub(super) fn group(&mut self, device: u64, group: StringId) -> ThreadId {
        let native = Thread::FIRST_NAMED + self.groups.len() as u64;
        let part = &mut self.part;
        let add = || {
            part.add_thread(Thread {
                process: device,
                native,
                name: group,
                device: DeviceKind::PrivateUse1,
            })
        };
        *self.groups.entry((device, group)).or_insert_with(add)
    }

    /// Returns the list of inputs with these shapes and types. Each pair is parsed once.
    pub(super) fn inputs(&mut self, shapes: StringId, dtypes: StringId) -> InputsId {
        let (part, encoder) = (&mut self.part, &mut self.encoder);
        let parse = || {
            let [shapes, dtypes] = [shapes, dtypes].map(|id| part.strings.text(id));
            if encode_inputs(encoder, shapes, dtypes) {
                part.inputs.intern(encoder.words())
            } else {
                InputsId::NONE
            }
        };
        *self.inputs.entry((shapes, dtypes)).or_insert_with(parse)
    }

    /// Keeps arguments of the last event as entries of a JSON object.
    pub(super) fn keep_arguments(&mut self, entries: &str) {
        let text = self.part.passthrough.texts.add(entries);
        self.keep_text(text);
    }

    /// Keeps a text as the arguments of the last event.
    pub(super) fn keep_text(&mut self, text: Option<TextId>) {
        let index = self.events.len().saturating_sub(1);
        if let Some(text) = text {
            (self.part.passthrough).set(PassthroughKind::Arguments, index, text);
        }
    }

    /// Sorts the events into the order of a profile, in place, and leaves out those that are in the
    /// files by mistake.
    pub(super) fn sort(&mut self) {
        let key = |event: &Event| (event.start, std::cmp::Reverse(event.end()));
        if !self.events.is_sorted_by_key(key) {
            self.reorder(find_order(&self.events));
        }
        let far = self.far_events();
        self.repairs.add(Repair::NoTime, far.len() as u64);
        self.part.add_loss(LossCause::Damaged, far.len() as u64);
        self.leave_out(&far);
        let repeated = self.repeated_tasks();
        self.repairs
            .add(Repair::DuplicateTask, repeated.len() as u64);
        self.leave_out(&repeated);
    }

    /// Moves the events: position `i` receives the one at `order[i]`.
    fn reorder(&mut self, order: Vec<u32>) {
        for column in [&mut self.connections, &mut self.tasks] {
            *column = order.iter().map(|&index| column[index as usize]).collect();
        }
        self.links = self.links.reordered(&order);
        reorder(order, &mut self.events, &mut self.part.passthrough);
    }

    /// Removes events, whose indices are in order.
    fn leave_out(&mut self, events: &[u32]) {
        if events.is_empty() {
            return;
        }
        let all = 0..self.events.len() as u32;
        let is_kept = |index: &u32| events.binary_search(index).is_err();
        let order: Vec<u32> = all.filter(is_kept).chain(events.iter().copied()).collect();
        let kept = order.len() - events.len();
        let links = self.links.reordered(&order[..kept]);
        self.reorder(order);
        self.links = links;
        self.events.truncate(kept);
        self.connections.truncate(kept);
        self.tasks.truncate(kept);
        self.part.passthrough.truncate(kept);
    }

    /// Returns the sorted events that are much farther away from the others than a recording is long,
    /// such as those at time zero.
    fn far_events(&self) -> Vec<u32> {
        let Some(usual) = usual_time(&self.events, |event| event.start) else {
            return Vec::new();
        };
        let is_far = |event: &Event| is_far(event.start, usual) || event.duration > LONGEST;
        let events = (0..).zip(&self.events);
        events
            .filter(|(_, event)| is_far(event))
            .map(|(index, _)| index)
            .collect()
    }

    /// Returns the sorted events that are tasks and repeat an earlier one in everything that tells
    /// tasks apart.
    fn repeated_tasks(&self) -> Vec<u32> {
        let time = |event: &Event| (event.start, event.duration);
        let mut repeated = Vec::new();
        let mut seen = FxHashSet::default();
        let mut begin = 0;
        for moment in self.events.chunk_by(|a, b| time(a) == time(b)) {
            if moment.len() > 1 {
                seen.clear();
                for (index, event) in (begin..).zip(moment) {
                    let task = self.tasks[index];
                    let id = (event.thread, event.name, task, self.connections[index]);
                    if task != 0 && !seen.insert(id) {
                        repeated.push(index as u32);
                    }
                }
            }
            begin += moment.len();
        }
        repeated
    }

    /// Builds the part. Time zero is the start of the first event, or without events that of the
    /// curve of memory.
    pub(super) fn into_reading(mut self, metadata: &[(&str, String)]) -> PartReading {
        self.settle_forward_threads();
        let usual = usual_time(&self.events, |event| event.start);
        let far = self.memory.leave_out_far(usual);
        self.repairs.add(Repair::NoTime, far);
        let zero = self.events.iter().map(|event| event.start).min();
        let zero = zero.or_else(|| self.memory.start()).unwrap_or_default();
        self.part.reference_unix_ns = zero.0;
        let facts: &mut Metadata = &mut self.part.metadata;
        facts.set(Metadata::BACKEND, "\"npu\"");
        for (key, value) in metadata {
            facts.set(*key, value.as_str());
        }
        self.connections = Vec::new();
        self.tasks = Vec::new();
        let events = EventBatch::settled(self.events, |event| {
            event.start = Nanos(event.start.0 - zero.0);
        });
        self.part.add_linked_events(events, self.links);
        self.repairs.add(Repair::AbsurdMemory, self.memory.absurd);
        self.memory.add_to(&mut self.part);
        PartReading {
            part: self.part,
            repairs: self.repairs,
            set_aside: PhaseCounts::default(),
            left_out: PhaseCounts::default(),
            unknown_categories: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Resolves forward threads, which the files give by number.
    fn settle_forward_threads(&mut self) {
        let threads = self.part.threads().iter();
        let are_of_cpu: Vec<bool> = threads
            .map(|thread| thread.device == DeviceKind::Cpu)
            .collect();
        let numbers = ThreadNumbers::build(&are_of_cpu, &self.events);
        let thread = |number: ThreadId| numbers.forward_thread(number.to_raw().saturating_add(1));
        self.links
            .map_forward_threads(|forward| forward.map(thread));
    }
}

/// Returns the middle one of some sorted times, among those that are dates if any is.
pub(super) fn usual_time<T>(sorted: &[T], time: impl Fn(&T) -> Nanos) -> Option<Nanos> {
    let first_date = sorted.partition_point(|one| time(one) < YEAR_2000);
    let chosen = match &sorted[first_date..] {
        [] => sorted,
        dates => dates,
    };
    chosen.get(chosen.len() / 2).map(time)
}

/// Returns whether a time is farther away from the usual one than a recording is long.
pub(super) fn is_far(time: Nanos, usual: Nanos) -> bool {
    time.0.abs_diff(usual.0) > LONGEST.0
}
