//! Turns captures into profiles: each window becomes a part, with ticks converted to nanoseconds
//! and the recorder's names to strings.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use mindprof_model::{
    DeviceKind, Event, EventBatch, Flags, ForwardThread, InputsId, Kinship, LinkColumns, Links,
    LossCause, NameSums, Nanos, Part, Profile, ProfileBuilder, Sampling, StackId, StepMark,
    StringId, StringTable, Thread, ThreadId, WholeRun,
};
use rustc_hash::FxHashMap;

use crate::arguments::Arguments;
use crate::capture::{Capture, ThreadCapture, WindowEvents};
use crate::clock::Scale;
use crate::forgotten::TickSums;
use crate::limit::{LeftOut, Only};
use crate::name::{self, NameKind};
use crate::nesting::Nesting;
use crate::open::OpenEntry;
use crate::options::Calls;
use crate::raw::{MemoryDevice, RawMemoryEvent, RawRole, Record, Stack};
use crate::results::add_results;
use crate::sampled_calls::{self, KnownStack};
use crate::samples::{SAMPLE_INTERVAL, Sample, SampleCapture};
use crate::storages::SideRecords;

/// Builds the profile of a capture, its earlier windows and everything attached to them.
pub(crate) fn assemble(capture: &Capture) -> Profile {
    let mut whole = whole_window(capture);
    for earlier in &capture.earlier {
        let mut part = Part::from(build(whole_window(earlier)));
        // Its times count from its own start.
        part.reference_unix_ns = capture.axis().reference_unix_ns();
        whole.append(part, Kinship::Process);
    }
    number(build(whole))
}

/// Numbers the events of a profile on from those of the profiles before, as torch does from one
/// recording to the next.
fn number(profile: Profile) -> Profile {
    // Relaxed: only uniqueness matters.
    static NUMBERED: AtomicU32 = AtomicU32::new(0);
    let events = profile.events().len() as u32;
    let before = NUMBERED.fetch_add(events, Ordering::Relaxed);
    profile.numbered_after(before)
}

fn build(window: ProfileBuilder) -> Profile {
    let profile = window.build();
    profile.expect("every name and thread was just added, and attached parts were checked")
}

/// Combines one window with the parts that were attached to it.
fn whole_window(capture: &Capture) -> ProfileBuilder {
    let own = events_of(capture);
    let joined = capture
        .attached
        .iter()
        .map(|attached| attached.joined(&own));
    let attached: Vec<Part> = joined.collect();
    let mut builder = ProfileBuilder::from(own.part);
    for part in attached {
        builder.append(part, Kinship::Window);
    }
    for process in &capture.processes {
        builder.append(Part::clone(process), Kinship::Process);
    }
    builder
}

/// Returns the steps that the profiler marked in the window.
fn step_marks(capture: &Capture) -> Vec<StepMark> {
    let axis = capture.axis();
    let start = capture.window.start;
    // The window may begin within a step, behind records that made room for others.
    let begun = capture
        .steps
        .partition_point(|&(moment, _)| moment <= start);
    let steps = capture.steps.iter().skip(begun.saturating_sub(1));
    let steps = steps.map(|&(moment, number)| StepMark {
        number,
        unix_ns: axis.reference_unix_ns() + axis.at_ticks(moment.max(start)).0,
    });
    steps.collect()
}

/// Builds the part of one window.
fn events_of(capture: &Capture) -> WindowEvents {
    let mut handles = Vec::new();
    let axis = capture.axis();
    let scale = axis.scale;
    let mut part = Part::new();
    part.reference_unix_ns = axis.reference_unix_ns();
    part.metadata = capture.metadata.clone();
    if let Some(limit) = capture.only.limit() {
        limit.write(&mut part.metadata);
    }
    StepMark::write(&step_marks(capture), &mut part.metadata);
    part.span = Nanos(scale.nanoseconds(capture.window.end));
    let mut names = Names {
        keep_overloads: capture.keep_overloads,
        lacks_operators: capture.only != Only::ALL,
        ..Names::default()
    };
    let mut links = ScopeLinks::default();
    for thread in &capture.threads {
        part.add_losses(&thread.lost);
        part.add_loss(LossCause::Depth, thread.open.deeper);
        let found = Found::of_window(capture, thread, &mut names, &mut part);
        if found.nesting.is_empty() && found.pieces == 0 {
            continue;
        }
        let tables = Tables {
            inputs: merge_inputs(capture, thread, &mut part),
            stacks: merge_stacks(capture, thread, &mut names, &mut part),
        };
        let name = part.strings.intern(&thread.name);
        let id = part.add_thread(own_thread(thread.native, name));
        handles.push(thread.handle);
        links.begin_thread(thread, id, &found);
        let scopes = Scopes {
            capture,
            thread,
            found: &found,
            tables: &tables,
            id,
        };
        scopes.add_to(&mut part, &mut names, &mut links);
        if found.pieces > 0 {
            part.reserve_memory(found.pieces);
            let pieces = pieces_of(capture, thread);
            part.add_memory_records(pieces.map(|piece| piece.assemble(id, &scale)));
        }
    }
    links.add_to(&mut part);
    if capture.opened_at < capture.window.start {
        whole_run(capture, &scale).write(&mut part.metadata);
    }
    if let Some(samples) = &capture.samples {
        let samples = merge_samples(samples, &scale, &mut names, &mut part);
        let end = part.span;
        sampled_calls::add_to(&mut part, samples, end);
    }
    WindowEvents { part, handles }
}

/// Sums up all records of a window whose first ones made room for later ones.
fn whole_run(capture: &Capture, scale: &Scale) -> WholeRun {
    let kept_from = capture.window.start;
    let mut sums: FxHashMap<u32, TickSums> = FxHashMap::default();
    let (mut only_in_sums, mut in_no_sum) = (0, 0);
    let table = name::table();
    // The sums are of operators and ranges.
    let has_sum = |name: u32| {
        let kind = table.get(name & !Record::ASYNC).map(|(_, kind)| kind);
        kind.is_some_and(|kind| !matches!(kind, NameKind::Function | NameKind::Module))
    };
    for thread in &capture.threads {
        let mut all = thread.forgotten.clone();
        in_no_sum += all.memory;
        for (name, forgotten) in all.sums() {
            let count = if has_sum(name) {
                &mut only_in_sums
            } else {
                &mut in_no_sum
            };
            *count += forgotten.calls;
        }
        let is_earlier = |record: &&Record| (capture.opened_at..kept_from).contains(&record.start);
        for record in thread.records().filter(is_earlier) {
            let is_summed = record.is_scope() && has_sum(record.name);
            only_in_sums += u64::from(is_summed);
            let is_event = record.is_scope() || record.is_memory();
            in_no_sum += u64::from(is_event && !is_summed);
        }
        thread.records().for_each(|record| all.add(record));
        // Scopes that are still open, innermost first.
        let own = |entry: &&OpenEntry| entry.start >= capture.opened_at;
        for entry in thread.open.entries.iter().rev().filter(own) {
            let is_earlier = entry.start < kept_from;
            only_in_sums += u64::from(is_earlier && has_sum(entry.name));
            in_no_sum += u64::from(is_earlier && !has_sum(entry.name));
            all.add(&Record {
                start: entry.start,
                end: capture.window.end,
                name: entry.name,
                inputs: 0,
                stack: entry.stack,
                sequence: Record::NO_SEQUENCE,
            });
        }
        for (name, own) in all.sums() {
            sums.entry(name).or_default().merge(own);
        }
    }
    let time = |ticks| Nanos(scale.duration(ticks));
    // Overloads of an operator share a name.
    let mut by_name: FxHashMap<&str, TickSums> = FxHashMap::default();
    for (number, sums) in sums {
        if let Some((text, kind)) = table.get(number).filter(|_| has_sum(number)) {
            let name = name::split_overload(text, kind).0;
            by_name.entry(name).or_default().merge(sums);
        }
    }
    let names = by_name.into_iter().map(|(name, sums)| NameSums {
        name: name.to_owned(),
        calls: sums.calls,
        total: time(sums.total),
        own: time(sums.own),
    });
    let mut names: Vec<_> = names.collect();
    names.sort_by(|a, b| b.own.cmp(&a.own).then_with(|| a.name.cmp(&b.name)));
    WholeRun {
        duration: time(capture.window.end - capture.opened_at),
        kept: time(capture.window.end - kept_from),
        only_in_sums,
        in_no_sum,
        names,
    }
}

/// Returns the samples by thread, with the stacks and times of the part, and adds threads that have
/// only samples.
fn merge_samples(
    samples: &SampleCapture,
    scale: &Scale,
    names: &mut Names,
    part: &mut Part,
) -> Vec<(ThreadId, Vec<KnownStack>)> {
    let stacks = merge_tree(&samples.stacks, names, part);
    let ids = (0..).map(ThreadId::from_raw);
    let known = part.threads().iter().zip(ids);
    let mut threads: FxHashMap<u64, ThreadId> =
        known.map(|(thread, id)| (thread.native, id)).collect();
    let mut lists: FxHashMap<ThreadId, Vec<KnownStack>> = FxHashMap::default();
    for sample in &samples.list {
        let thread = *threads.entry(sample.thread).or_insert_with(|| {
            let name = samples.names.get(&sample.thread);
            let name = part.strings.intern(name.map_or("", |name| name));
            part.add_thread(own_thread(sample.thread, name))
        });
        lists.entry(thread).or_default().push(KnownStack {
            time: Nanos(scale.nanoseconds(sample.time)),
            stack: stacks[sample.stack as usize],
        });
    }
    sampling(samples, scale).write(&mut part.metadata);
    let mut lists: Vec<_> = lists.into_iter().collect();
    lists.sort_unstable_by_key(|(thread, _)| *thread);
    lists
}

/// Returns how the main thread was sampled. The shares of time that reports show are its.
fn sampling(samples: &SampleCapture, scale: &Scale) -> Sampling {
    let process = u64::from(std::process::id());
    let has_process = samples.list.iter().any(|sample| sample.thread == process);
    let first = samples.list.first().map(|sample| sample.thread);
    let main = if has_process { Some(process) } else { first };
    let is_main = |sample: &&Sample| Some(sample.thread) == main;
    let times = samples.list.iter().filter(is_main);
    let mut times: Vec<u64> = times.map(|sample| sample.time).collect();
    let count = times.len() as u64;
    // The sampler rests longer if there are many threads. The median leaves out the time of imports,
    // in which each sample takes long because most code in it is new.
    times.sort_unstable();
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let interval_ns = if gaps.is_empty() {
        SAMPLE_INTERVAL.as_nanos() as u64
    } else {
        let middle = gaps.len() / 2;
        scale.duration(*gaps.select_nth_unstable(middle).1)
    };
    Sampling {
        interval_us: interval_ns / 1000,
        samples: samples.list.len() as u64,
        main_samples: count,
        dropped: samples.dropped,
    }
}

/// Describes a CPU thread of this process.
fn own_thread(native: u64, name: StringId) -> Thread {
    Thread {
        process: u64::from(std::process::id()),
        native,
        name,
        device: DeviceKind::Cpu,
    }
}

/// The scopes of one thread, with everything needed to turn them into events.
struct Scopes<'a> {
    capture: &'a Capture,
    thread: &'a ThreadCapture,
    found: &'a Found,
    tables: &'a Tables,
    id: ThreadId,
}

impl Scopes<'_> {
    /// Adds the scopes in start order, with the storage addresses of their inputs.
    ///
    /// The records are read in place: a recording is large, and the page faults of a copy would
    /// cost more than everything else here.
    fn add_to(&self, part: &mut Part, names: &mut Names, links: &mut ScopeLinks) {
        let (capture, thread) = (self.capture, self.thread);
        let scale = capture.axis().scale;
        let order = self.found.nesting.start_order();
        let first = part.len();
        let names_by_start = self.hierarchies();
        let mut hierarchies = Vec::new();
        let mut cursor = thread.cursor(&self.found.open);
        let mut events = EventBatch::with_capacity(order.len());
        for (place, &index) in order.iter().enumerate() {
            let record = cursor.at(index as usize);
            let window = &capture.window;
            events.push(names.event(record, self.id, self.tables, &scale, window, part));
            if !names_by_start.is_empty()
                && let Some(&number) = names_by_start.get(&record.start)
            {
                hierarchies.push((place, number));
            }
            let overload = names.overload(record);
            if record.has_forward() || self.found.has_numbers || overload != StringTable::EMPTY {
                links.add(first + place, record, overload);
            }
        }
        for (place, number) in hierarchies {
            let name = names.find(number, part).0;
            links.set_module_hierarchy(first + place, name);
        }
        part.add_events(events);
        if self.found.has_arguments {
            let mut cursor = thread.cursor(&self.found.open);
            let records = order.iter().map(|&index| cursor.at(index as usize));
            Arguments::of_thread(thread).add_to(records, first, part);
        }
        if capture.keep_results {
            add_results(thread, &order, first, part);
        }
        if capture.keep_inputs && capture.keep_memory {
            let notes = SideRecords::collect(thread.records());
            let mut cursor = thread.cursor(&self.found.open);
            let records = order.iter().map(|&index| cursor.at(index as usize));
            add_notes(&notes, records, first, part);
            let in_window = |role: &&RawRole| capture.window.contains(&role.time);
            for role in notes.roles().iter().filter(in_window) {
                part.add_role(role.assemble(self.id, &scale));
            }
        }
    }
}

impl Scopes<'_> {
    /// Returns the names of the calls of modules that scopes ran in, by the starts of the scopes.
    fn hierarchies(&self) -> FxHashMap<u64, u32> {
        if !self.capture.keep_hierarchies {
            return FxHashMap::default();
        }
        let records = self.thread.records();
        let records = records.filter(|record| record.name == Record::HIERARCHY);
        records
            .map(|record| (record.start, record.end as u32))
            .collect()
    }
}

/// The links of scopes: the threads of backward nodes' forward operators, held by key until all
/// threads are known, the ids by which device work and execution traces refer to scopes, and the
/// overloads of operators.
#[derive(Default)]
struct ScopeLinks {
    columns: LinkColumns,
    threads: FxHashMap<u32, ThreadId>,
    /// The key of the current thread, and the forward threads that its nodes recorded, by the
    /// starts of the nodes.
    own: u32,
    told: FxHashMap<u64, u32>,
    /// The external ids of the current thread's scopes, by their starts.
    externals: FxHashMap<u64, u32>,
    /// The record function ids of the current thread's scopes, by their starts.
    functions: FxHashMap<u64, u32>,
}

impl ScopeLinks {
    /// Moves on to the scopes of another thread.
    fn begin_thread(&mut self, thread: &ThreadCapture, id: ThreadId, found: &Found) {
        self.own = thread.key;
        self.threads.insert(thread.key, id);
        self.told.clear();
        if found.has_forwards {
            let notes = thread.records();
            let notes = notes.filter(|record| record.name == Record::FORWARD);
            (self.told).extend(notes.map(|record| (record.start, record.end as u32)));
        }
        self.externals.clear();
        self.functions.clear();
        if found.has_numbers {
            for record in thread.records() {
                let numbers = match record.name {
                    Record::EXTERNAL => &mut self.externals,
                    Record::FUNCTION => &mut self.functions,
                    _ => continue,
                };
                numbers.insert(record.start, record.end as u32);
            }
        }
    }

    /// Adds the links of a scope, which is the part's event `index`.
    fn add(&mut self, index: usize, record: &Record, overload: StringId) {
        let mut links = Links::default();
        links.set_overload(overload);
        if record.has_forward() {
            let key = self.told.get(&record.start).copied().unwrap_or(self.own);
            links.set_forward_thread(ForwardThread::At(ThreadId::from_raw(key)));
        }
        let external = self.externals.get(&record.start);
        links.external = external.copied().unwrap_or(0);
        let function = self.functions.get(&record.start);
        links.record_function = function.copied().unwrap_or(0);
        if links != Links::default() {
            self.columns.set(index, links);
        }
    }

    /// Sets the calls of modules that the part's event `index` ran in.
    fn set_module_hierarchy(&mut self, index: usize, name: StringId) {
        let mut links = self.columns.at(index);
        links.set_module_hierarchy(name);
        self.columns.set(index, links);
    }

    /// Sets the links of the part, once all its threads are known.
    fn add_to(mut self, part: &mut Part) {
        let threads = &self.threads;
        let thread = |key: ThreadId| match threads.get(&key.to_raw()) {
            Some(&thread) => ForwardThread::At(thread),
            None => ForwardThread::Elsewhere,
        };
        self.columns
            .map_forward_threads(|forward| forward.map(thread));
        part.set_links(self.columns);
    }
}

/// Iterates over the thread's allocations and frees in the window, if it wants memory.
fn pieces_of(capture: &Capture, thread: &ThreadCapture) -> impl Iterator<Item = RawMemoryEvent> {
    let mut reserved = FxHashMap::default();
    thread.records().filter_map(move |record| {
        if record.name == Record::RESERVED {
            reserved.insert(MemoryDevice::of_reserved(record), record.end);
        }
        let is_piece = record.is_memory() && is_piece_wanted(capture, record);
        is_piece.then(|| {
            let mut piece = RawMemoryEvent::from_record(record);
            piece.reserved = reserved.get(&piece.device).copied().unwrap_or(0);
            piece
        })
    })
}

fn is_piece_wanted(capture: &Capture, record: &Record) -> bool {
    capture.keep_memory && capture.window.contains(&record.start)
}

/// Adds the storage addresses of scopes that come in start order, the first of which is the part's
/// event `first`.
fn add_notes<'a>(
    notes: &SideRecords,
    scopes: impl Iterator<Item = &'a Record>,
    first: usize,
    part: &mut Part,
) {
    let mut find = notes.walk();
    part.reserve_storages(first + scopes.size_hint().0);
    for (index, record) in scopes.enumerate() {
        if record.has_storages() {
            part.set_storages(first + index, find(record));
        }
    }
}

/// The records of one thread that belong to a window. Some are only counted at first, so that their
/// columns are allocated at full size: a column that grows is copied, and faults its pages in
/// again.
struct Found {
    /// The scopes among the thread's records, followed by those among `open`.
    nesting: Nesting,
    /// Scopes that were open when the window closed, innermost first.
    open: Vec<Record>,
    pieces: usize,
    /// Whether some forward operators ran on other threads than their backward nodes.
    has_forwards: bool,
    /// Whether some scopes have external ids or record function ids.
    has_numbers: bool,
    /// Whether some scopes have arguments beside their inputs.
    has_arguments: bool,
}

impl Found {
    /// Classifies the records of a thread.
    fn of_window(
        capture: &Capture,
        thread: &ThreadCapture,
        names: &mut Names,
        part: &mut Part,
    ) -> Self {
        let mut found = Self {
            nesting: Nesting::with_capacity(thread.len()),
            open: still_open(capture, thread),
            pieces: 0,
            has_forwards: false,
            has_numbers: false,
            has_arguments: false,
        };
        let mut is_wanted = |record: &Record| {
            is_wanted(capture, record)
                && (record.stack & Record::CALL == 0
                    || capture.keep_calls == Calls::All
                    || names.is_module(record, part))
        };
        let left_out = LeftOut::of_window(capture, thread, &found.open);
        for (index, record) in thread.records().enumerate() {
            if record.is_scope() && is_wanted(record) && !left_out.contains(index) {
                found.nesting.push(record.start.max(capture.window.start));
                continue;
            }
            found.nesting.pass_by();
            let is_piece = record.is_memory() && is_piece_wanted(capture, record);
            found.pieces += usize::from(is_piece);
            found.has_forwards |= record.name == Record::FORWARD;
            found.has_numbers |= matches!(record.name, Record::EXTERNAL | Record::FUNCTION);
            found.has_arguments |= record.name == Record::ARGUMENTS;
        }
        let mut indices = thread.len()..;
        found.open.retain(|record| {
            let is_left_out = indices.next().is_some_and(|index| left_out.contains(index));
            is_wanted(record) && !is_left_out
        });
        for record in &found.open {
            found.nesting.push(record.start.max(capture.window.start));
        }
        found
    }
}

/// Returns whether a scope belongs to the window. Calls are recorded also during pauses.
///
/// A window with stacks begins with the calls that are open then, as if they had been made at that
/// moment. In the first window they are; if another window was open before, their records begin
/// earlier.
///
/// ```text
/// outer window   |-----------------------|
/// call             |-----------------|
/// inner window          |--------|
/// its event             |--------|
/// ```
#[inline]
fn is_wanted(capture: &Capture, record: &Record) -> bool {
    if record.stack & Record::CALL == 0 {
        return capture.wants(record.start);
    }
    let window = &capture.window;
    match capture.keep_calls {
        Calls::None | Calls::Sampled => false,
        Calls::Modules => window.contains(&record.start),
        Calls::All => record.start < window.end && record.end > window.start,
    }
}

/// Returns records of the scopes that were open when the window closed, innermost first.
fn still_open(capture: &Capture, thread: &ThreadCapture) -> Vec<Record> {
    let entries = thread.open.entries.iter().rev();
    let records = entries.map(|entry| Record {
        start: entry.start,
        end: u64::MAX,
        name: entry.name,
        // Its storage addresses may not be written yet.
        inputs: entry.inputs & !(Record::NEW_STORAGES | Record::HAS_STORAGES),
        stack: entry.stack,
        sequence: Record::NO_SEQUENCE,
    });
    records
        .filter(|record| is_wanted(capture, record))
        .collect()
}

/// Maps the thread's numbers of input lists to the profile's. Empty if the window did not ask for
/// inputs.
fn merge_inputs(capture: &Capture, thread: &ThreadCapture, part: &mut Part) -> Vec<InputsId> {
    if !capture.keep_inputs {
        return Vec::new();
    }
    thread
        .inputs
        .iter()
        .map(|words| part.inputs.intern(words))
        .collect()
}

/// Maps the thread's numbers of stacks to the profile's. Empty if the window did not ask for
/// stacks.
fn merge_stacks(
    capture: &Capture,
    thread: &ThreadCapture,
    names: &mut Names,
    part: &mut Part,
) -> Vec<StackId> {
    match capture.keep_calls {
        Calls::All | Calls::Sampled => merge_tree(&thread.stacks, names, part),
        Calls::None | Calls::Modules => Vec::new(),
    }
}

/// Maps the numbers of a tree of stacks to the profile's. Callers come before their callees.
fn merge_tree(tree: &[[u32; 2]], names: &mut Names, part: &mut Part) -> Vec<StackId> {
    let mut stacks = Vec::with_capacity(tree.len() + 1);
    stacks.push(StackId::NONE);
    for &[caller, frame] in tree {
        let (frame, _) = names.find(frame, part);
        let stack = part.stacks.push(
            stacks
                .get(caller as usize)
                .copied()
                .unwrap_or(StackId::NONE),
            frame,
        );
        stacks.push(stack);
    }
    stacks
}

/// Maps one thread's numbers to the profile's ids.
struct Tables {
    inputs: Vec<InputsId>,
    stacks: Vec<StackId>,
}

/// Maps the recorder's names to the profile's strings, filled as they are met.
#[derive(Default)]
struct Names {
    known: Vec<Option<KnownName>>,
    keep_overloads: bool,
    /// Whether operators may be missing. The forward operator of a backward node may be one of them,
    /// and another one with the same number would take its place.
    lacks_operators: bool,
}

#[derive(Clone, Copy)]
struct KnownName {
    name: StringId,
    kind: NameKind,
    /// Empty if there is none, or if the window did not ask for overloads.
    overload: StringId,
}

impl Names {
    #[inline]
    fn event(
        &mut self,
        record: &Record,
        thread: ThreadId,
        tables: &Tables,
        scale: &Scale,
        window: &Range<u64>,
        part: &mut Part,
    ) -> Event {
        let (name, kind) = self.find(record.name & !Record::ASYNC, part);
        let (category, scope) = kind.describe();
        let start = scale.nanoseconds(record.start.max(window.start));
        let end = scale.nanoseconds(record.end.min(window.end));
        let mut event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
        event.scope = scope;
        let inputs = tables.inputs.get(record.inputs_number() as usize);
        event.inputs = inputs.copied().unwrap_or(InputsId::NONE);
        let stack = Stack::from_record(record.stack);
        let stack = tables.stacks.get(stack.raw() as usize);
        event.stack = stack.copied().unwrap_or(StackId::NONE);
        if !self.lacks_operators {
            event.set_sequence(record.sequence_number());
        }
        if record.end > window.end {
            event.flags = event.flags.union(Flags::UNFINISHED);
        }
        if record.name & Record::ASYNC != 0 {
            event.flags = event.flags.union(Flags::ASYNC);
        }
        event
    }

    fn is_module(&mut self, record: &Record, part: &mut Part) -> bool {
        let (_, kind) = self.find(record.name & !Record::ASYNC, part);
        kind == NameKind::Module
    }

    /// Returns the overload of a scope whose event was made already.
    #[inline]
    fn overload(&self, record: &Record) -> StringId {
        if !self.keep_overloads {
            return StringTable::EMPTY;
        }
        let known = self.known.get((record.name & !Record::ASYNC) as usize);
        let known = known.copied().flatten();
        known.map_or(StringTable::EMPTY, |known| known.overload)
    }

    #[inline]
    fn find(&mut self, number: u32, part: &mut Part) -> (StringId, NameKind) {
        let known = match self.known.get(number as usize) {
            Some(Some(known)) => *known,
            Some(None) | None => self.add(number, part),
        };
        (known.name, known.kind)
    }

    #[cold]
    fn add(&mut self, number: u32, part: &mut Part) -> KnownName {
        let index = number as usize;
        let table = name::table();
        let (text, kind) = table
            .get(number)
            .expect("a record's name came from the table");
        let (text, overload) = name::split_overload(text, kind);
        let found = KnownName {
            name: part.strings.intern(text),
            kind,
            overload: if self.keep_overloads {
                part.strings.intern(overload)
            } else {
                StringTable::EMPTY
            },
        };
        if self.known.len() <= index {
            self.known.resize(index + 1, None);
        }
        self.known[index] = Some(found);
        found
    }
}
