//! Reads raw results of torch's collector into a part of a profile.
//!
//! Takes the events of a [`RawEvents`] source. A part has no room for everything that a raw event
//! says (metadata, flows); [`RawResults`] maps its events back to the raw ones by position.

use std::cmp::Reverse;
use std::mem;
use std::ops::ControlFlow;

use mindprof_model::{
    Category, DeviceKind, Event, Flags, ForwardThread, InputsEncoder, Links, LossCause,
    MEMORY_EVENT, MemoryRecord, Nanos, OUT_OF_MEMORY_EVENT, Part, PassthroughKind, ScopeKind,
    StackId, StringId, StringTable, TextId, Thread, ThreadId, is_hidden_event,
};
use rustc_hash::FxHashMap;

use super::callers::{Caller, Callers};
use super::launches::Launches;
use super::source::{RawEvent, RawEvents};
use crate::error::Error;
use crate::layout::record_scope;

/// Raw results as a part, with the positions of the raw events that its contents came from.
///
/// [`read_raw_results`] returns it. Callers that show more of an event than a part holds look up
/// the raw event by its position.
pub struct RawResults {
    /// The part. Its events and memory records are in the order that they have in a profile.
    pub part: Part,
    /// For each event of the part, the position of its raw event.
    pub events: Vec<u32>,
    /// For each memory record of the part, the position of its raw event.
    pub memory: Vec<usize>,
    /// The failed allocations as records, with the positions of their raw events.
    pub failed: Vec<(usize, MemoryRecord)>,
    /// The largest correlation id of the events that are not hidden.
    pub last_number: i128,
}

/// Options for [`read_raw_results`]: what to read besides times, names and links.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// The start of the results, in nanoseconds since the Unix epoch.
    pub time_zero: i128,
    /// Whether to read the inputs of operators and annotations.
    pub inputs: bool,
    /// Whether to read stacks.
    pub stacks: bool,
    /// The numbers that identify CPU threads.
    pub threads: ThreadIdentity,
    /// The number of events that are known to be missing. They may be those of launches without a
    /// kernel, which are counted beyond this number only.
    pub known_loss: u64,
}

/// The numbers that identify CPU threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadIdentity {
    /// Torch's own count, for results whose process is unknown.
    Counted,
    /// The operating system's thread ids, so that the threads match those of a recording in this
    /// process.
    System,
}

/// Reads raw results into a part.
///
/// `visit` is called with the position of each event that is not hidden, before the event is read.
/// If it breaks, the part holds the events read so far, and all memory records.
///
/// # Errors
/// If an accessor or `visit` fails, or if an event is linked to a negative correlation id.
pub fn read_raw_results<S: RawEvents>(
    source: &S,
    options: ReadOptions,
    mut visit: impl FnMut(usize) -> Result<ControlFlow<()>, S::Error>,
) -> Result<RawResults, S::Error> {
    let mut reader = Reader::new(source, options);
    let mut meanings = Meanings::default();
    let names = source.names(&mut reader.part.strings)?;
    // User annotations that have the name of a memory record.
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

/// The meaning of an event's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Memory,
    OutOfMemory,
    Hidden,
    Shown,
}

impl Meaning {
    /// Returns whether events of the name are memory records, unless they are user annotations.
    const fn is_record(self) -> bool {
        matches!(self, Self::Memory | Self::OutOfMemory)
    }
}

/// Meanings by the ids of names, each computed once.
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
            MEMORY_EVENT => Meaning::Memory,
            OUT_OF_MEMORY_EVENT => Meaning::OutOfMemory,
            text if is_hidden_event(text) => Meaning::Hidden,
            _ => Meaning::Shown,
        })
    }
}

/// A part under construction.
///
/// Until [`Reader::finish`], times are relative to the start of the results and may be negative,
/// thread ids index `threads`, and forward threads have torch's numbers.
struct Reader<'a, S> {
    source: &'a S,
    options: ReadOptions,
    part: Part,
    threads: Vec<Thread>,
    /// Threads by kind of device, process or device index, and number: torch's count for CPU
    /// threads, the stream for devices.
    tracks: FxHashMap<(DeviceKind, u64, u64), ThreadId>,
    numbers: LinkNumbers,
    inputs: InputsEncoder,
    launches: Launches,
    callers: Callers,
    /// Texts of arguments by the keys of the source.
    arguments: FxHashMap<u32, TextId>,
    events: Vec<Entry>,
    /// Indices of backward nodes in `events`, with the threads of their forward operators.
    forward_threads: Vec<(usize, u64)>,
    memory: Vec<MemoryEntry>,
    failed: Vec<MemoryEntry>,
    last_number: i128,
}

/// An event under construction. It is kept small because there may be millions.
struct Entry {
    /// Its start and duration hold the signed times of its start and end.
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
            arguments: FxHashMap::default(),
            events: Vec::with_capacity(source.len()),
            forward_threads: Vec::new(),
            memory: Vec::new(),
            failed: Vec::new(),
            last_number: 0,
        }
    }

    fn read_memory(&mut self, position: usize, raw: &RawEvent) -> Result<MemoryEntry, S::Error> {
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

    /// Adds an instant event for a failed allocation. A part has no room for its size.
    fn add_failed(&mut self, request: MemoryEntry) {
        let name = self.part.strings.intern(OUT_OF_MEMORY_EVENT);
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
    ) -> Result<(), S::Error> {
        if raw.linked < 0 && !is_hidden {
            return Err(Error::NegativeLink(raw.linked).into());
        }
        let text = self.part.strings.text(name);
        let (category, is_scope) = (raw.category(text), raw.is_scope(text));
        let times = (self.since_zero(raw.start_ns), self.since_zero(raw.end_ns));
        let thread = if raw.device == DeviceKind::Cpu {
            self.cpu_thread(raw, is_scope, times)
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
                self.launches.add_call(name, text, raw.correlation, times.0);
            }
            Category::Kernel => {
                self.launches.add_work(raw.correlation);
                self.read_arguments(position, raw)?;
            }
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
        if raw.may_change_thread() {
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

    /// Keeps the arguments of device work for written traces and for what is said about devices.
    fn read_arguments(&mut self, position: usize, raw: &RawEvent) -> Result<(), S::Error> {
        let key = self.source.arguments_key(position);
        if let Some(text) = key.and_then(|key| self.arguments.get(&key)) {
            let passthrough = &mut self.part.passthrough;
            passthrough.set(PassthroughKind::Arguments, self.events.len(), *text);
            return Ok(());
        }
        let told = self.source.arguments(position)?;
        // Readers of traces expect at least these.
        let text = told.unwrap_or_else(|| {
            format!(
                "\"device\":{},\"stream\":{}",
                raw.device_index, raw.resource
            )
        });
        let passthrough = &mut self.part.passthrough;
        if let Some(text) = passthrough.texts.add(&text) {
            passthrough.set(PassthroughKind::Arguments, self.events.len(), text);
            if let Some(key) = key {
                self.arguments.insert(key, text);
            }
        }
        Ok(())
    }

    fn read_stack(&mut self, position: usize) -> Result<StackId, S::Error> {
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

    /// Returns the CPU thread of the event that is being read.
    fn cpu_thread(&mut self, raw: &RawEvent, is_scope: bool, times: (i64, i64)) -> ThreadId {
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
        // torch assigns all other events to the thread that started the collection, whichever
        // thread they ran on.
        if raw.resource == 0 {
            return self.collector_thread();
        }
        // `set_callers` replaces it once all events are read.
        self.callers
            .add_unlinked(self.events.len(), raw.resource, times.0);
        ThreadId::from_raw(0)
    }

    /// Returns a thread for the collector's own work, whose thread torch does not tell.
    fn collector_thread(&mut self) -> ThreadId {
        let id = self.track(DeviceKind::Cpu, std::process::id().into(), 0);
        self.threads[id.index()].name = self.part.strings.intern(COLLECTOR_THREAD);
        id
    }

    /// Sets the threads of calls outside any scope. A call whose thread cannot be inferred goes to
    /// a thread with the number that the call reports.
    fn set_callers(&mut self) {
        let process = std::process::id().into();
        for (place, caller) in mem::take(&mut self.callers).into_threads() {
            self.events[place].event.thread = match caller {
                Caller::Known(thread) => thread,
                Caller::Numbered(number) => self.track(DeviceKind::Cpu, process, number as u64),
            };
        }
    }

    /// Returns the thread with torch's number of an event.
    fn counted_thread(&mut self, raw: &RawEvent) -> ThreadId {
        self.track(DeviceKind::Cpu, UNKNOWN_PROCESS, raw.start_thread)
    }

    /// Returns the thread with torch's number of an event, and notes the system's id of it.
    fn numbered_thread(&mut self, raw: &RawEvent) -> ThreadId {
        let id = self.counted_thread(raw);
        // Not every event reports the system's id of its thread.
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

    /// Adds the threads to the part and returns their ids in it. Threads that turned out to be the
    /// same share an id.
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

    /// Returns the indices of events in time order.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.events.len() as u32).collect();
        if !self.events.is_sorted_by_key(Entry::order) {
            order.sort_by_key(|&place| self.events[place as usize].order());
        }
        order
    }

    /// Sorts everything by time, moves time zero to the earliest event, and fills the part.
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
            let thread = self.tracks.get(&(DeviceKind::Cpu, UNKNOWN_PROCESS, number));
            let thread = thread.map_or(ForwardThread::Elsewhere, |id| {
                ForwardThread::At(threads[id.index()])
            });
            self.events[place].links.set_forward_thread(thread);
        }
        self.part
            .passthrough
            .reorder(PassthroughKind::Arguments, &order);
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
        let unreported = unreported.saturating_sub(self.options.known_loss);
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

/// The name of the thread for the collector's own work.
const COLLECTOR_THREAD: &str = "collector of torch";

/// The process id of threads that are known only by torch's count.
const UNKNOWN_PROCESS: u64 = 0;

/// Returns the scope that a number of torch's `RecordScope` stands for.
fn scope(number: i128) -> ScopeKind {
    match u8::try_from(number) {
        Ok(record_scope::BACKWARD_FUNCTION) => ScopeKind::Backward,
        Ok(record_scope::USER_SCOPE) => ScopeKind::User,
        _ => ScopeKind::Function,
    }
}

/// Correlation ids in the 32 bits that a part has for them. Ids that fit are unchanged.
#[derive(Default)]
struct LinkNumbers {
    wide: FxHashMap<i128, u32>,
}

impl LinkNumbers {
    fn number(&mut self, number: i128) -> u32 {
        u32::try_from(number).unwrap_or_else(|_| {
            // Counted down from the top, far from the ids of a collector that counts from one.
            let next = u32::MAX - self.wide.len() as u32;
            *self.wide.entry(number).or_insert(next)
        })
    }
}
