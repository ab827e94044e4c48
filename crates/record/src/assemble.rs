//! From a capture to a profile: the one place where ticks become nanoseconds and recorder's names
//! become strings.

use mindprof_model::{
    DeviceKind, Event, Flags, InputsId, LossCause, Nanos, Profile, ProfileBuilder, StackId,
    StringId, Thread, ThreadId,
};
use rustc_hash::FxHashSet;

use crate::capture::{Capture, ThreadCapture};
use crate::chunk::Record;
use crate::clock::{Anchor, Scale};
use crate::local::ASYNC_BIT;
use crate::memory::{Piece, Pieces};
use crate::name::{self, NameKind};
use crate::stack::{CALL_BIT, Calls, Stack};
use crate::storages::{Notes, Said};

/// Makes the profile of a capture and of the earlier ones that belong to it.
pub(crate) fn assemble(capture: &Capture) -> Profile {
    let mut builder = ProfileBuilder::new();
    let scale = scale(capture);
    let opening = capture.window.start.saturating_sub(capture.opened.ticks());
    builder.reference_unix_ns = capture.opened.unix_ns() + scale.duration(opening);
    builder.metadata = capture.metadata.clone();
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

/// Adds what all threads have for one window.
fn add_window(capture: &Capture, names: &mut Names, builder: &mut ProfileBuilder) {
    let scale = scale(capture);
    let span = Nanos(scale.nanoseconds(capture.window.end));
    builder.span = builder.span.max(span);
    for thread in &capture.threads {
        builder.add_losses(&thread.lost);
        builder.add_loss(LossCause::Depth, thread.open.deeper);
        let open = still_open(capture, thread);
        let (mut scopes, pieces, notes) = of_window(capture, thread, &open);
        if capture.keep_calls == Calls::Modules {
            scopes
                .retain(|record| record.stack & CALL_BIT == 0 || names.is_module(record, builder));
        }
        if scopes.is_empty() && pieces.is_empty() {
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
        let window_end = capture.window.end;
        let order = start_order(&scopes);
        let in_order = || order.iter().map(|&index| scopes[index as usize]);
        let events = in_order()
            .map(|record| names.event(record, id, &tables, &scale, window_end, builder))
            .collect();
        let first = builder.len();
        builder.add_events(events);
        if capture.keep_inputs && capture.keep_memory {
            add_notes(&notes, in_order(), first, builder);
            let in_window = |role: &&Said| capture.window.contains(&role.time);
            for role in notes.roles().iter().filter(in_window) {
                builder.add_role(role.assemble(id, &scale));
            }
        }
        for piece in pieces {
            builder.add_memory(piece.assemble(id, &scale));
        }
    }
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
    for (index, record) in scopes.enumerate().filter(|(_, record)| record.inputs != 0) {
        let addresses = find(record.start);
        if !addresses.is_empty() {
            builder.set_storages(first + index, addresses);
        }
    }
}

/// Returns the scopes that began within the window, in end order, its memory and what is known of
/// tensors. Scopes that were open when it closed come last, innermost first.
///
/// A recording is large and is read once, so that its records are looked at where they lie: copies
/// would cost more in page faults than all else here.
fn of_window<'a>(
    capture: &Capture,
    thread: &'a ThreadCapture,
    open: &'a [Record],
) -> (Vec<&'a Record>, Vec<Piece>, Notes) {
    let mut scopes: Vec<&Record> = Vec::with_capacity(thread.len() + open.len());
    let (mut pieces, mut notes) = (Pieces::default(), Notes::default());
    for record in thread.records() {
        if !pieces.takes(record) && !notes.takes(record) && is_wanted(capture, record) {
            scopes.push(record);
        }
    }
    let ended_late: FxHashSet<(u64, u32)> = scopes
        .iter()
        .rev()
        .take_while(|record| record.end >= capture.window.end)
        .map(|record| (record.start, record.name))
        .collect();
    let unknown = |record: &&Record| !ended_late.contains(&(record.start, record.name));
    scopes.extend(open.iter().filter(unknown));
    let mut pieces = pieces.finish();
    pieces.retain(|piece| capture.keep_memory && capture.window.contains(&piece.time));
    (scopes, pieces, notes)
}

/// Returns whether a record is of the window. Calls go on while scopes are not wanted.
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

/// Returns the start order of records that lie in end order, the longer of two with one start
/// first, without comparing more than neighbours.
///
/// ```text
/// end order     b  c  a  d         a |-------------|
/// subtree size  1  1  3  1         b   |--| c |--|     d |---|
/// depth         1  1  0  0
/// position = index - (size - 1) + depth:   b 1  c 2  a 0  d 3
/// ```
///
/// A scope that ends swallows the ones before it that began after it; the stack holds what is not
/// swallowed yet, by ascending start. Scopes that cross, which only calls out of turn can bring
/// about, are left to the builder's sort, to which everything else comes sorted.
fn start_order(records: &[&Record]) -> Vec<u32> {
    let mut sizes: Vec<u32> = Vec::with_capacity(records.len());
    let mut standing: Vec<(u64, u32)> = Vec::new();
    for record in records {
        let mut size = 1;
        while let Some((_, inner)) = standing.pop_if(|(start, _)| *start >= record.start) {
            size += inner;
        }
        standing.push((record.start, size));
        sizes.push(size);
    }
    let mut order = vec![0; records.len()];
    let mut enclosing: Vec<usize> = Vec::new();
    for (index, size) in sizes.into_iter().enumerate().rev() {
        let first_inside = index + 1 - size as usize;
        while enclosing.pop_if(|begin| *begin > index).is_some() {}
        order[first_inside + enclosing.len()] = index as u32;
        enclosing.push(first_inside);
    }
    order
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
        let inputs = tables.inputs.get(record.inputs as usize);
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

    fn find(&mut self, number: u32, builder: &mut ProfileBuilder) -> (StringId, NameKind) {
        let index = number as usize;
        if let Some(Some(found)) = self.known.get(index) {
            return *found;
        }
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

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;

    fn in_start_order(records: &[Record]) -> Vec<Record> {
        let order = start_order(&records.iter().collect::<Vec<_>>());
        order
            .into_iter()
            .map(|index| records[index as usize])
            .collect()
    }

    fn record(start: u64, end: u64) -> Record {
        Record {
            start,
            end,
            name: 1,
            inputs: 0,
            stack: 0,
            sequence: u32::MAX,
        }
    }

    #[test]
    fn nested_records_come_out_in_start_order() {
        // a |-------------|
        // b   |--| c |--|     d |---|
        let (a, b, c, d) = (record(0, 14), record(2, 5), record(7, 10), record(20, 24));
        assert_eq!(in_start_order(&[b, c, a, d]), [a, b, c, d]);
    }

    #[test]
    fn of_equal_intervals_the_one_that_ended_last_is_the_outer() {
        let (inner, outer) = (
            record(3, 9),
            Record {
                name: 2,
                ..record(3, 9)
            },
        );
        assert_eq!(in_start_order(&[inner, outer]), [outer, inner]);
    }

    proptest! {
        #[test]
        fn nested_records_need_no_sort(cuts in prop::collection::vec((0_usize..100, 0_usize..100), 0..60)) {
            let records = nested(&cuts);
            let mut sorted = records.clone();
            sorted.sort_by_key(|record| (record.start, Reverse(record.end)));
            prop_assert_eq!(in_start_order(&records), sorted);
        }

        #[test]
        fn no_record_is_lost_or_doubled(
            intervals in prop::collection::vec((0_u64..50, 0_u64..20), 0..60),
        ) {
            let mut records: Vec<Record> =
                intervals.into_iter().map(|(start, length)| record(start, start + length)).collect();
            records.sort_by_key(|record| record.end);
            let key = |record: &Record| (record.start, record.end);
            let mut ordered = in_start_order(&records);
            ordered.sort_by_key(key);
            records.sort_by_key(key);
            prop_assert_eq!(ordered, records);
        }
    }

    /// Makes distinct, properly nested intervals in end order: a walk that opens and closes by the
    /// given choices.
    fn nested(choices: &[(usize, usize)]) -> Vec<Record> {
        let (mut open, mut closed, mut now) = (Vec::new(), Vec::new(), 0);
        for &(opens, closes) in choices {
            for _ in 0..opens % 3 {
                open.push(now);
                now += 1;
            }
            for _ in 0..closes % 3 {
                if let Some(start) = open.pop() {
                    closed.push(record(start, now));
                    now += 1;
                }
            }
        }
        closed
    }
}
