//! Reads raw results of torch's collector into a part of a profile.
//!
//! What a part has no room for (metadata, flows) stays with the raw event, which is found again by
//! its position.

use std::cmp::Reverse;
use std::mem;
use std::ops::ControlFlow;

use mindprof_analyze::{MEMORY_KEY, OUT_OF_MEMORY_KEY};
use mindprof_model::{
    Category, DeviceKind, Event, Flags, ForwardThread, InputsEncoder, Links, LossCause,
    MemoryRecord, Nanos, Part, ScopeKind, StackId, StringId, StringTable, Thread, ThreadId,
};
use mindprof_trace::is_hidden_name;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::callers::{Caller, Callers};
use super::launches::Launches;
use super::source::{RawEvent, RawEvents};

/// Raw results as a part, and the way back from it to the raw events.
pub(crate) struct RawResults {
    /// Its events and memory records lie in the order that they have in a profile.
    pub(crate) part: Part,
    /// By event of the part, the position of its raw event.
    pub(crate) events: Vec<u32>,
    /// By memory record of the part, the position of its raw event.
    pub(crate) memory: Vec<usize>,
    /// The requests for memory that failed, as records, and the positions of their raw events.
    pub(crate) failed: Vec<(usize, MemoryRecord)>,
    /// The largest number of an event that is shown.
    pub(crate) last_number: i128,
}

/// What is read, beside times, names and links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadOptions {
    /// The results' time zero, in nanoseconds since the Unix epoch.
    pub(crate) time_zero: i128,
    pub(crate) inputs: bool,
    pub(crate) stacks: bool,
    pub(crate) threads: ThreadIdentity,
}

/// By what threads of the host are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadIdentity {
    /// By torch's count. Who made the results is not known.
    Counted,
    /// By the numbers of the system, as in what is recorded in this process beside.
    System,
}

/// Reads raw results.
///
/// `visit` sees the position of each event that is shown before it is read; when it breaks, the
/// part holds what was read until then, and the memory records of all.
///
/// # Errors
/// When an accessor fails or says what no recorder would, or when `visit` does.
pub(crate) fn read_raw_results(
    source: &impl RawEvents,
    options: ReadOptions,
    mut visit: impl FnMut(usize) -> PyResult<ControlFlow<()>>,
) -> PyResult<RawResults> {
    let mut reader = Reader::new(source, options);
    let mut meanings = Meanings::default();
    let names = source.names(&mut reader.part.strings)?;
    // Ranges that a user gave the name of a record.
    let mut ranges = Vec::new();
    for (position, &name) in names.iter().enumerate() {
        let meaning = meanings.meaning(name, &reader.part.strings);
        if !meaning.is_record() {
            continue;
        }
        let raw = source.event(position)?;
        if raw.is_annotation {
            ranges.push(position);
            continue;
        }
        let record = reader.read_memory(position, &raw)?;
        if meaning == Meaning::OutOfMemory {
            reader.add_failed(record);
        } else {
            reader.memory.push(record);
        }
    }
    for (position, name) in names.into_iter().enumerate() {
        let meaning = meanings.meaning(name, &reader.part.strings);
        if meaning.is_record() && ranges.binary_search(&position).is_err() {
            continue;
        }
        let raw = source.event(position)?;
        let is_hidden = raw.is_hidden || meaning == Meaning::Hidden;
        if !is_hidden && visit(position)?.is_break() {
            break;
        }
        reader.read_event(position, name, &raw, is_hidden)?;
    }
    Ok(reader.finish())
}

/// What the name of an event says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Memory,
    OutOfMemory,
    Hidden,
    Shown,
}

impl Meaning {
    /// Returns whether it is a record of memory, unless a user gave a range such a name.
    const fn is_record(self) -> bool {
        matches!(self, Self::Memory | Self::OutOfMemory)
    }
}

/// Meanings by the ids of names, each looked up once.
#[derive(Default)]
struct Meanings {
    known: Vec<Option<Meaning>>,
}

impl Meanings {
    fn meaning(&mut self, name: StringId, strings: &StringTable) -> Meaning {
        if self.known.len() <= name.index() {
            self.known.resize(strings.len(), None);
        }
        *self.known[name.index()].get_or_insert_with(|| match strings.text(name) {
            MEMORY_KEY => Meaning::Memory,
            OUT_OF_MEMORY_KEY => Meaning::OutOfMemory,
            text if is_hidden_name(text) => Meaning::Hidden,
            _ => Meaning::Shown,
        })
    }
}

/// A part on its way: times count from the results' time zero, forward threads have the numbers of
/// torch's count.
struct Reader<'a, S> {
    source: &'a S,
    options: ReadOptions,
    part: Part,
    threads: Vec<Thread>,
    /// The threads by kind of device, its number, and their own numbers: of the host's threads by
    /// torch's count, of devices' the streams.
    tracks: FxHashMap<(DeviceKind, u64, u64), ThreadId>,
    numbers: LinkNumbers,
    inputs: InputsEncoder,
    launches: Launches,
    callers: Callers,
    events: Vec<Entry>,
    /// Backward nodes, by their places in `events`, with the threads of their forward operators.
    forward_threads: Vec<(usize, u64)>,
    memory: Vec<MemoryEntry>,
    failed: Vec<MemoryEntry>,
    last_number: i128,
}

/// An event on its way. There are very many, so that what can be told by others is left out.
struct Entry {
    /// Its start and duration are the signed times of its begin and end.
    event: Event,
    links: Links,
    position: u32,
}

impl Entry {
    fn new(position: usize, mut event: Event, links: Links, (start, end): (i64, i64)) -> Self {
        event.start = Nanos(start.cast_unsigned());
        event.duration = Nanos(end.cast_unsigned());
        Self {
            event,
            links,
            position: position as u32,
        }
    }

    fn start(&self) -> i64 {
        self.event.start.0.cast_signed()
    }

    fn end(&self) -> i64 {
        self.event.duration.0.cast_signed()
    }

    fn order(&self) -> (i64, Reverse<i64>) {
        (self.start(), Reverse(self.end()))
    }
}

struct MemoryEntry {
    position: usize,
    time: i64,
    record: MemoryRecord,
}

impl<'a, S: RawEvents> Reader<'a, S> {
    fn new(source: &'a S, options: ReadOptions) -> Self {
        Self {
            source,
            options,
            part: Part::new(),
            threads: Vec::new(),
            tracks: FxHashMap::default(),
            numbers: LinkNumbers::default(),
            inputs: InputsEncoder::default(),
            launches: Launches::default(),
            callers: Callers::default(),
            events: Vec::with_capacity(source.len()),
            forward_threads: Vec::new(),
            memory: Vec::new(),
            failed: Vec::new(),
            last_number: 0,
        }
    }

    fn read_memory(&mut self, position: usize, raw: &RawEvent) -> PyResult<MemoryEntry> {
        let stack = self.read_stack(position)?;
        let record = MemoryRecord {
            time: Nanos::ZERO,
            address: 0,
            bytes: self.source.bytes(position)?,
            total_allocated: 0,
            total_reserved: 0,
            thread: self.numbered_thread(raw),
            stack,
            device: raw.device,
            device_index: i16::try_from(raw.device_index).unwrap_or(-1),
        };
        Ok(MemoryEntry {
            position,
            time: self.since_zero(raw.start_ns),
            record,
        })
    }

    /// Adds the moment at which memory was not to be had; a part has no room for how much it was.
    fn add_failed(&mut self, request: MemoryEntry) {
        let name = self.part.strings.intern(OUT_OF_MEMORY_KEY);
        let thread = request.record.thread;
        let mut event = Event::new(Category::Other, name, thread, Nanos::ZERO, Nanos::ZERO);
        event.flags = Flags::INSTANT;
        let times = (request.time, request.time);
        let links = Links::default();
        self.events
            .push(Entry::new(request.position, event, links, times));
        self.failed.push(request);
    }

    fn read_event(
        &mut self,
        position: usize,
        name: StringId,
        raw: &RawEvent,
        is_hidden: bool,
    ) -> PyResult<()> {
        if raw.linked < 0 && !is_hidden {
            return Err(PyRuntimeError::new_err(format!(
                "Got negative correlation id {} in profiler post processing",
                raw.linked
            )));
        }
        let text = self.part.strings.text(name);
        let (category, is_scope) = (raw.category(text), raw.is_scope(text));
        let times = (self.since_zero(raw.start_ns), self.since_zero(raw.end_ns));
        let thread = if raw.device == DeviceKind::Cpu {
            self.host_thread(raw, is_scope, times)
        } else {
            self.track(raw.device, raw.device_index as u64, raw.resource as u64)
        };
        let mut event = Event::new(category, name, thread, Nanos::ZERO, Nanos::ZERO);
        event.scope = scope(raw.scope);
        event.set_sequence(u32::try_from(raw.sequence).ok());
        event.stack = self.read_stack(position)?;
        match category {
            Category::Runtime => {
                let text = self.part.strings.text(name);
                self.launches.add_call(name, text, raw.correlation);
            }
            Category::Kernel => self.launches.add_work(raw.correlation),
            Category::Operator
            | Category::Annotation
            | Category::PythonFunction
            | Category::DeviceAnnotation
            | Category::Other => {}
        }
        if self.options.inputs && matches!(category, Category::Operator | Category::Annotation) {
            self.inputs.restart();
            self.source.inputs(position, &mut self.inputs)?;
            event.inputs = self.part.inputs.intern(self.inputs.words());
        }
        if is_hidden {
            event.flags = event.flags.union(Flags::HIDDEN);
        } else {
            self.last_number = self.last_number.max(raw.correlation);
        }
        if raw.is_elsewhere() {
            event.flags = event.flags.union(Flags::ASYNC);
        }
        let number = self.numbers.number(raw.correlation);
        let links = if is_scope {
            Links::new(number, 0)
        } else {
            Links::new(self.numbers.number(raw.linked), number)
        };
        if raw.forward_thread != 0 {
            let place = self.events.len();
            self.forward_threads.push((place, raw.forward_thread));
        }
        self.events.push(Entry::new(position, event, links, times));
        Ok(())
    }

    fn read_stack(&mut self, position: usize) -> PyResult<StackId> {
        if self.options.stacks {
            self.source.stack(position, &mut self.part)
        } else {
            Ok(StackId::NONE)
        }
    }

    fn since_zero(&self, time_ns: i128) -> i64 {
        let since = time_ns - self.options.time_zero;
        since.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Returns the host's thread of the event that is read next.
    fn host_thread(&mut self, raw: &RawEvent, is_scope: bool, times: (i64, i64)) -> ThreadId {
        if self.options.threads == ThreadIdentity::Counted {
            return self.counted_thread(raw);
        }
        if is_scope {
            let thread = self.numbered_thread(raw);
            self.callers.add_work(thread, raw.resource, times);
            return thread;
        }
        if raw.linked != 0 {
            let thread = self.counted_thread(raw);
            self.callers.add_work(thread, raw.resource, times);
            return thread;
        }
        // torch counts all else to the thread that began the collection, whichever made it.
        if raw.resource == 0 {
            return self.collector_thread();
        }
        // It is set when all is read.
        self.callers
            .add_unlinked(self.events.len(), raw.resource, times.0);
        ThreadId::from_raw(0)
    }

    /// Returns a thread for what the collector itself did, of which it is not told where.
    fn collector_thread(&mut self) -> ThreadId {
        let id = self.track(DeviceKind::Cpu, std::process::id().into(), 0);
        self.threads[id.index()].name = self.part.strings.intern(COLLECTOR_THREAD);
        id
    }

    /// Sets the threads of calls that no scope asked for. Those of which no more is known have one
    /// by the number that they tell.
    fn set_callers(&mut self) {
        let process = std::process::id().into();
        for (place, caller) in mem::take(&mut self.callers).into_threads() {
            self.events[place].event.thread = match caller {
                Caller::Known(thread) => thread,
                Caller::Numbered(number) => self.track(DeviceKind::Cpu, process, number as u64),
            };
        }
    }

    /// Returns the thread of torch's count.
    fn counted_thread(&mut self, raw: &RawEvent) -> ThreadId {
        self.track(DeviceKind::Cpu, HOST_PROCESS, raw.start_thread)
    }

    /// Returns the thread of torch's count of something that tells the system's number too.
    fn numbered_thread(&mut self, raw: &RawEvent) -> ThreadId {
        let id = self.counted_thread(raw);
        // Not all that ran on a thread tells the system's number of it.
        if self.options.threads == ThreadIdentity::System && raw.resource != 0 {
            let thread = &mut self.threads[id.index()];
            thread.native = raw.resource as u64;
            thread.process = std::process::id().into();
        }
        id
    }

    fn track(&mut self, device: DeviceKind, process: u64, native: u64) -> ThreadId {
        let threads = &mut self.threads;
        let key = (device, process, native);
        *self.tracks.entry(key).or_insert_with(|| {
            threads.push(Thread {
                process,
                native,
                name: StringTable::EMPTY,
                device,
            });
            ThreadId::from_index(threads.len() - 1)
        })
    }

    /// Adds the threads to the part, and returns their ids in it. Those that turned out to be the
    /// same have one.
    fn settled_threads(&mut self) -> Vec<ThreadId> {
        let mut known = FxHashMap::default();
        let part = &mut self.part;
        let threads = self.threads.iter().map(|thread| {
            let identity = (thread.device, thread.process, thread.native);
            *known
                .entry(identity)
                .or_insert_with(|| part.add_thread(*thread))
        });
        threads.collect()
    }

    /// Returns the places of events by time.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.events.len() as u32).collect();
        if !self.events.is_sorted_by_key(Entry::order) {
            order.sort_by_key(|&place| self.events[place as usize].order());
        }
        order
    }

    /// Orders everything, so that positions stay known, and counts time from the earliest moment.
    fn finish(mut self) -> RawResults {
        let order = self.order();
        self.memory.sort_by_key(|entry| entry.time);
        let first = order.first().map(|&place| &self.events[place as usize]);
        let firsts = [
            first.map(Entry::start),
            self.memory.first().map(|entry| entry.time),
        ];
        let zero = firsts.into_iter().flatten().fold(0, i64::min);
        let since = |time: i64| Nanos(time.abs_diff(zero));
        let reference = self.options.time_zero + i128::from(zero);
        self.part.reference_unix_ns = u64::try_from(reference).unwrap_or(0);
        self.set_callers();
        let threads = self.settled_threads();
        for &(place, number) in &self.forward_threads {
            let thread = self.tracks.get(&(DeviceKind::Cpu, HOST_PROCESS, number));
            let thread = thread.map_or(ForwardThread::Elsewhere, |id| {
                ForwardThread::At(threads[id.index()])
            });
            self.events[place].links.set_forward_thread(thread);
        }
        for &place in &order {
            let entry = &self.events[place as usize];
            let (start, end) = (since(entry.start()), since(entry.end().max(entry.start())));
            let mut event = entry.event;
            event.thread = threads[event.thread.index()];
            (event.start, event.duration) = (start, end - start);
            self.part.add_linked_event(event, entry.links);
        }
        let record = |entry: &MemoryEntry| MemoryRecord {
            time: since(entry.time),
            thread: threads[entry.record.thread.index()],
            ..entry.record
        };
        self.part.add_memory_records(self.memory.iter().map(record));
        let unreported = self.launches.unreported();
        self.part.add_loss(LossCause::Unreported, unreported);
        let failed = self.failed.iter();
        RawResults {
            part: self.part,
            events: order
                .iter()
                .map(|&place| self.events[place as usize].position)
                .collect(),
            memory: self.memory.iter().map(|entry| entry.position).collect(),
            failed: failed
                .map(|entry| (entry.position, record(entry)))
                .collect(),
            last_number: self.last_number,
        }
    }
}

/// What the thread is called of what a collector does itself.
const COLLECTOR_THREAD: &str = "collector of torch";

/// The process of threads of which no more is known than torch's count.
const HOST_PROCESS: u64 = 0;

/// Returns the scope that a number of the recorder's stands for.
const fn scope(number: i128) -> ScopeKind {
    match number {
        1 => ScopeKind::Backward,
        7 => ScopeKind::User,
        _ => ScopeKind::Function,
    }
}

/// Numbers that tie events together, in the 32 bits that a part has for them. Those that fit stay.
#[derive(Default)]
struct LinkNumbers {
    wide: FxHashMap<i128, u32>,
}

impl LinkNumbers {
    fn number(&mut self, number: i128) -> u32 {
        u32::try_from(number).unwrap_or_else(|_| {
            // From the top, where a recorder that counts from one comes last.
            let next = u32::MAX - self.wide.len() as u32;
            *self.wide.entry(number).or_insert(next)
        })
    }
}
