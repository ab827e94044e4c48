//! From a capture to a profile: the one place where ticks become nanoseconds and recorder's names
//! become strings.

use mindprof_model::{
    DeviceKind, Event, EventBatch, Flags, InputsId, LossCause, Nanos, Profile, ProfileBuilder,
    StackId, StepMark, StringId, Thread, ThreadId,
};
use rustc_hash::FxHashSet;

use crate::capture::{Capture, ThreadCapture};
use crate::chunk::Record;
use crate::clock::{Anchor, Scale};
use crate::local::ASYNC_BIT;
use crate::memory::Piece;
use crate::name::{self, NameKind};
use crate::nesting::Nesting;
use crate::stack::{CALL_BIT, Calls, Stack};
use crate::storages::{Notes, Said};

/// Makes the profile of a capture and of the earlier ones that belong to it.
pub(crate) fn assemble(capture: &Capture) -> Profile {
    let mut builder = ProfileBuilder::new();
    let scale = scale(capture);
    let opening = capture.window.start.saturating_sub(capture.opened.ticks());
    builder.reference_unix_ns = capture.opened.unix_ns() + scale.duration(opening);
    builder.metadata = capture.metadata.clone();
    StepMark::write(&step_marks(capture, &builder), &mut builder.metadata);
    let mut names = Names::default();
    add_window(capture, &mut names, &mut builder);
    for earlier in &capture.earlier {
        add_window(earlier, &mut names, &mut builder);
    }
    builder
        .build()
        .expect("every name and thread was added just now")
}

/// Returns the scale whose zero is the start of the capture's window.
fn scale(capture: &Capture) -> Scale {
    Scale::new(capture.window.start, &Anchor::first(), &capture.closed)
}

/// Returns when the steps of the window began that the profiler told of.
fn step_marks(capture: &Capture, builder: &ProfileBuilder) -> Vec<StepMark> {
    let (scale, steps) = (scale(capture), capture.steps.iter());
    let steps = steps.map(|&(moment, number)| StepMark {
        number,
        unix_ns: builder.reference_unix_ns + scale.nanoseconds(moment),
    });
    steps.collect()
}

/// Adds what all threads have for one window.
fn add_window(capture: &Capture, names: &mut Names, builder: &mut ProfileBuilder) {
    let scale = scale(capture);
    let span = Nanos(scale.nanoseconds(capture.window.end));
    builder.span = builder.span.max(span);
    for thread in &capture.threads {
        builder.add_losses(&thread.lost);
        builder.add_loss(LossCause::Depth, thread.open.deeper);
        let found = Found::of_window(capture, thread, names, builder);
        if found.nesting.is_empty() && found.pieces == 0 {
            continue;
        }
        let tables = Tables {
            inputs: merge_inputs(capture, thread, builder),
            stacks: merge_stacks(capture, thread, names, builder),
        };
        let name = builder.strings.intern(&thread.name);
        let id = builder.add_thread(Thread {
            process: u64::from(std::process::id()),
            native: thread.native,
            name,
            device: DeviceKind::Cpu,
        });
        add_scopes(capture, thread, &found, &tables, names, id, builder);
        if found.pieces > 0 {
            builder.reserve_memory(found.pieces);
            let pieces = pieces_of(capture, thread);
            builder.add_memory_records(pieces.map(|piece| piece.assemble(id, &scale)));
        }
    }
}

/// Adds the scopes of a thread in start order, and where the tensors lie that they were given.
///
/// A recording is large, so that its records are read where they lie: copies would cost more in
/// page faults than all else here.
fn add_scopes(
    capture: &Capture,
    thread: &ThreadCapture,
    found: &Found,
    tables: &Tables,
    names: &mut Names,
    id: ThreadId,
    builder: &mut ProfileBuilder,
) {
    let scale = scale(capture);
    let order = found.nesting.start_order();
    let mut cursor = thread.cursor(&found.open);
    let mut events = EventBatch::with_capacity(order.len());
    for &index in &order {
        let record = cursor.at(index as usize);
        events.push(names.event(record, id, tables, &scale, capture.window.end, builder));
    }
    let first = builder.len();
    builder.add_events(events);
    if capture.keep_inputs && capture.keep_memory {
        let notes = Notes::collect(thread.records());
        let mut cursor = thread.cursor(&found.open);
        let records = order.iter().map(|&index| cursor.at(index as usize));
        add_notes(&notes, records, first, builder);
        let in_window = |role: &&Said| capture.window.contains(&role.time);
        for role in notes.roles().iter().filter(in_window) {
            builder.add_role(role.assemble(id, &scale));
        }
    }
}

/// Walks the memory that a thread took and gave back in the window, if that is wanted.
fn pieces_of(capture: &Capture, thread: &ThreadCapture) -> impl Iterator<Item = Piece> {
    let records = thread.records();
    let records = records.filter(|record| record.name == Record::MEMORY);
    records
        .filter(|record| is_piece_wanted(capture, record))
        .map(Piece::from_record)
}

fn is_piece_wanted(capture: &Capture, record: &Record) -> bool {
    capture.keep_memory && capture.window.contains(&record.start)
}

/// Adds where the tensors lie of scopes that come in start order, the first of which is the
/// builder's event `first`.
fn add_notes<'a>(
    notes: &Notes,
    scopes: impl Iterator<Item = &'a Record>,
    first: usize,
    builder: &mut ProfileBuilder,
) {
    let mut find = notes.walk();
    builder.reserve_storages(first + scopes.size_hint().0);
    for (index, record) in scopes.enumerate() {
        if record.has_storages() {
            builder.set_storages(first + index, find(record));
        }
    }
}

/// What one thread has for a window. Much of it is only counted at first, so that there is room for
/// all of it when it is taken: what grows as it goes is copied, and faults its pages in again.
struct Found {
    /// The scopes among the thread's records, and after them among `open`.
    nesting: Nesting,
    /// Scopes that were open when the window closed, innermost first.
    open: Vec<Record>,
    pieces: usize,
}

impl Found {
    /// Sorts the records of a thread by what they are.
    fn of_window(
        capture: &Capture,
        thread: &ThreadCapture,
        names: &mut Names,
        builder: &mut ProfileBuilder,
    ) -> Self {
        let mut found = Self {
            nesting: Nesting::with_capacity(thread.len()),
            open: still_open(capture, thread),
            pieces: 0,
        };
        let mut is_wanted = |record: &Record| {
            is_wanted(capture, record)
                && (record.stack & CALL_BIT == 0
                    || capture.keep_calls != Calls::Modules
                    || names.is_module(record, builder))
        };
        let mut ended_late = FxHashSet::default();
        for record in thread.records() {
            if record.is_scope() && is_wanted(record) {
                found.nesting.push(record.start);
                if record.end >= capture.window.end {
                    ended_late.insert((record.start, record.name));
                }
                continue;
            }
            found.nesting.pass_by();
            let is_piece = record.name == Record::MEMORY && is_piece_wanted(capture, record);
            found.pieces += usize::from(is_piece);
        }
        found.open.retain(|record| {
            !ended_late.contains(&(record.start, record.name)) && is_wanted(record)
        });
        for record in &found.open {
            found.nesting.push(record.start);
        }
        found
    }
}

/// Returns whether a record is of the window. Calls go on while scopes are not wanted.
#[inline]
fn is_wanted(capture: &Capture, record: &Record) -> bool {
    if record.stack & CALL_BIT == 0 {
        return capture.wants(record.start);
    }
    capture.keep_calls != Calls::None && capture.window.contains(&record.start)
}

/// Returns records of the scopes that were open when the window closed, innermost first.
fn still_open(capture: &Capture, thread: &ThreadCapture) -> Vec<Record> {
    let entries = thread.open.entries.iter().rev();
    let records = entries.map(|entry| Record {
        start: entry.start,
        end: u64::MAX,
        name: entry.name,
        inputs: 0,
        stack: entry.stack,
        sequence: u32::MAX,
    });
    records
        .filter(|record| is_wanted(capture, record))
        .collect()
}

/// Maps the thread's numbers of input lists to the profile's; empty if the window did not ask for
/// inputs.
fn merge_inputs(
    capture: &Capture,
    thread: &ThreadCapture,
    builder: &mut ProfileBuilder,
) -> Vec<InputsId> {
    if !capture.keep_inputs {
        return Vec::new();
    }
    thread
        .inputs
        .iter()
        .map(|words| builder.inputs.intern(words))
        .collect()
}

/// Maps the thread's numbers of stacks to the profile's; empty if the window did not ask for
/// stacks. Callers come first.
fn merge_stacks(
    capture: &Capture,
    thread: &ThreadCapture,
    names: &mut Names,
    builder: &mut ProfileBuilder,
) -> Vec<StackId> {
    if capture.keep_calls != Calls::All {
        return Vec::new();
    }
    let mut stacks = Vec::with_capacity(thread.stacks.len() + 1);
    stacks.push(StackId::NONE);
    for &[caller, frame] in &thread.stacks {
        let (frame, _) = names.find(frame, builder);
        let stack = builder.stacks.push(
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

/// The profile's ids by the numbers of one thread.
struct Tables {
    inputs: Vec<InputsId>,
    stacks: Vec<StackId>,
}

/// The profile's strings by the recorder's numbers, filled as they are met.
#[derive(Default)]
struct Names {
    known: Vec<Option<(StringId, NameKind)>>,
}

impl Names {
    #[inline]
    fn event(
        &mut self,
        record: &Record,
        thread: ThreadId,
        tables: &Tables,
        scale: &Scale,
        window_end: u64,
        builder: &mut ProfileBuilder,
    ) -> Event {
        let (name, kind) = self.find(record.name & !ASYNC_BIT, builder);
        let (category, scope) = kind.describe();
        let start = scale.nanoseconds(record.start);
        let end = scale.nanoseconds(record.end.min(window_end));
        let mut event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
        event.scope = scope;
        let inputs = tables.inputs.get(record.inputs_number() as usize);
        event.inputs = inputs.copied().unwrap_or(InputsId::NONE);
        let stack = Stack::from_record(record.stack);
        let stack = tables.stacks.get(stack.raw() as usize);
        event.stack = stack.copied().unwrap_or(StackId::NONE);
        event.set_sequence((record.sequence != u32::MAX).then_some(record.sequence));
        if record.end > window_end {
            event.flags = event.flags.union(Flags::UNFINISHED);
        }
        if record.name & ASYNC_BIT != 0 {
            event.flags = event.flags.union(Flags::ASYNC);
        }
        event
    }

    fn is_module(&mut self, record: &Record, builder: &mut ProfileBuilder) -> bool {
        let (_, kind) = self.find(record.name & !ASYNC_BIT, builder);
        kind == NameKind::Module
    }

    #[inline]
    fn find(&mut self, number: u32, builder: &mut ProfileBuilder) -> (StringId, NameKind) {
        match self.known.get(number as usize) {
            Some(Some(found)) => *found,
            Some(None) | None => self.add(number, builder),
        }
    }

    #[cold]
    fn add(&mut self, number: u32, builder: &mut ProfileBuilder) -> (StringId, NameKind) {
        let index = number as usize;
        let table = name::table();
        let (text, kind) = table
            .get(number)
            .expect("a record's name came from the table");
        let found = (builder.strings.intern(text), kind);
        if self.known.len() <= index {
            self.known.resize(index + 1, None);
        }
        self.known[index] = Some(found);
        found
    }
}
