//! One sequence of packets: what its readers remember, and what therefore needs no second telling.
//!
//! Names are told once, times are differences, and the track is the default, so that beginning and
//! ending a slice takes some thirty bytes together before they are compressed.

use mindprof_model::{Category, Event, InputsId, Nanos, Profile, StackId, StringId};
use rustc_hash::FxHashMap;

use super::fields::{annotation, event as field, interned, trace};
use super::message::Message;
use crate::category_name;
use crate::chrome::inputs_lists;
use crate::flows::{FlowEnd, FlowKind, FlowSide};

const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// The clocks: the trace's own, the wall's, and one per sequence whose readings are differences.
const BOOT_CLOCK: u64 = 6;
const WALL_CLOCK: u64 = 1;
const DIFFERENCE_CLOCK: u64 = 64;

/// The arguments of slices; they are interned under their positions from one, those of inputs in
/// the order in which their lists are made.
const ARGUMENTS: [&str; 6] = [
    "Concrete Inputs",
    "Input type",
    "Input Strides",
    "Input Dims",
    "Call stack",
    "Sequence number",
];
const CALL_STACK: u64 = 5;
const SEQUENCE_NUMBER: u64 = 6;

/// The state of a sequence.
pub(super) struct Sequence<'a> {
    profile: &'a Profile,
    pub(super) id: u64,
    now: Nanos,
    /// The ends of the slices that are open, the outermost first.
    open: Vec<Nanos>,
    names: FxHashMap<(StringId, Category), (u64, u64)>,
    categories: Vec<&'static str>,
    inputs: FxHashMap<InputsId, u64>,
    stacks: FxHashMap<StackId, u64>,
    texts: u64,
    /// What the next packet tells for the first time.
    news: Message,
}

impl<'a> Sequence<'a> {
    pub(super) fn new(profile: &'a Profile, id: u64) -> Self {
        Self {
            profile,
            id,
            now: Nanos::ZERO,
            open: Vec::new(),
            names: FxHashMap::default(),
            categories: Vec::new(),
            inputs: FxHashMap::default(),
            stacks: FxHashMap::default(),
            texts: 0,
            news: Message::default(),
        }
    }

    /// The number of the sequence's track.
    pub(super) fn track(&self) -> u64 {
        self.id << 1 | 1
    }

    /// Fills the packet that holds for the whole sequence: its clock, its track and the names of
    /// arguments.
    pub(super) fn open(&self, packet: &mut Message) {
        packet.number(trace::SEQUENCE, self.id);
        packet.number(trace::FLAGS, STATE_CLEARED | NEEDS_STATE);
        packet.message(trace::CLOCK_SNAPSHOT, |snapshot| {
            for (clock, time) in [
                (BOOT_CLOCK, 0),
                (WALL_CLOCK, self.profile.reference_unix_ns()),
                (DIFFERENCE_CLOCK, 0),
            ] {
                snapshot.message(1, |reading| {
                    reading.number(1, clock).number(2, time);
                    if clock == DIFFERENCE_CLOCK {
                        reading.number(3, 1);
                    }
                });
            }
        });
        packet.message(trace::DEFAULTS, |defaults| {
            defaults.number(trace::CLOCK, DIFFERENCE_CLOCK);
            defaults.message(trace::TRACK_EVENT, |event| {
                event.number(field::TRACK, self.track());
            });
        });
        packet.message(trace::INTERNED, |news| {
            for (index, name) in ARGUMENTS.iter().enumerate() {
                add_text(news, interned::ANNOTATION_NAMES, index as u64 + 1, name);
            }
        });
    }

    /// Returns the end of the innermost slice that has ended by `time`, and closes it.
    pub(super) fn close_before(&mut self, time: Nanos) -> Option<Nanos> {
        self.open.pop_if(|end| *end <= time)
    }

    /// Fills the packet of a slice's end.
    pub(super) fn end(&mut self, end: Nanos, packet: &mut Message) {
        self.at(end, packet);
        packet.message(trace::TRACK_EVENT, |event| {
            event.number(field::TYPE, field::END);
        });
    }

    /// Fills the packet of a slice's beginning.
    pub(super) fn begin(&mut self, event: &Event, flow: Option<FlowEnd>, packet: &mut Message) {
        self.open.push(event.end());
        self.news.clear();
        let (name, category) = self.intern_name(event);
        let inputs = self.intern_inputs(event.inputs);
        let stack = self.intern_stack(event);
        self.at(event.start, packet);
        packet.message(trace::TRACK_EVENT, |slice| {
            slice.number(field::TYPE, field::BEGIN);
            slice.number(field::CATEGORY, category);
            slice.number(field::NAME, name);
            for (argument, text) in (1..=4).zip(inputs.into_iter().flat_map(|first| first..)) {
                annotate(slice, argument, annotation::INTERNED_TEXT, text);
            }
            if let Some(stack) = stack {
                annotate(slice, CALL_STACK, annotation::INTERNED_TEXT, stack);
            }
            if let Some(sequence) = event.sequence() {
                annotate(slice, SEQUENCE_NUMBER, annotation::NUMBER, sequence.into());
            }
            if let Some(flow) = flow {
                slice.fixed(flow_field(flow), flow_number(flow));
            }
        });
        if !self.news.as_bytes().is_empty() {
            packet.bytes(trace::INTERNED, self.news.as_bytes());
        }
    }

    /// Fills the packet of a counter's value, which is of another track.
    pub(super) fn count(&mut self, time: Nanos, track: u64, value: u64, packet: &mut Message) {
        self.at(time, packet);
        packet.message(trace::TRACK_EVENT, |event| {
            event.number(field::TYPE, field::COUNTER);
            event.number(field::TRACK, track);
            event.number(field::COUNTER_VALUE, value);
        });
    }

    fn at(&mut self, time: Nanos, packet: &mut Message) {
        let difference = time.saturating_sub(self.now);
        self.now = self.now.max(time);
        packet.number(trace::TIMESTAMP, difference.0);
        packet.number(trace::SEQUENCE, self.id);
    }

    fn intern_name(&mut self, event: &Event) -> (u64, u64) {
        let key = (event.name, event.category);
        if let Some(&known) = self.names.get(&key) {
            return known;
        }
        let name = self.profile.name(event);
        let thread = self.profile.threads()[event.thread.index()];
        let category = category_name(event.category, name, Some(thread.device));
        let position = self.categories.iter().position(|known| *known == category);
        let position = position.unwrap_or_else(|| {
            self.categories.push(category);
            let id = self.categories.len();
            add_text(&mut self.news, interned::CATEGORIES, id as u64, category);
            id - 1
        });
        let ids = (self.names.len() as u64 + 1, position as u64 + 1);
        self.names.insert(key, ids);
        add_text(&mut self.news, interned::NAMES, ids.0, name);
        ids
    }

    /// Returns the number of the first of the four texts of a list of inputs.
    fn intern_inputs(&mut self, inputs: InputsId) -> Option<u64> {
        if inputs == InputsId::NONE {
            return None;
        }
        if let Some(&known) = self.inputs.get(&inputs) {
            return Some(known);
        }
        let first = self.texts + 1;
        for (_, list) in inputs_lists(self.profile.inputs().inputs(inputs)) {
            self.intern_text(&list);
        }
        self.inputs.insert(inputs, first);
        Some(first)
    }

    /// Python functions lie within their callers, so that their stacks are seen anyway.
    fn intern_stack(&mut self, event: &Event) -> Option<u64> {
        if event.stack == StackId::NONE || event.category == Category::PythonFunction {
            return None;
        }
        if let Some(&known) = self.stacks.get(&event.stack) {
            return Some(known);
        }
        let frames = self.profile.stacks().frames(event.stack);
        let frames: Vec<_> = frames
            .map(|frame| self.profile.strings().text(frame))
            .collect();
        let id = self.intern_text(&frames.join("\n"));
        self.stacks.insert(event.stack, id);
        Some(id)
    }

    fn intern_text(&mut self, text: &str) -> u64 {
        self.texts += 1;
        add_text(&mut self.news, interned::ANNOTATION_TEXTS, self.texts, text);
        self.texts
    }
}

fn annotate(slice: &mut Message, argument: u64, kind: u32, value: u64) {
    slice.message(field::ANNOTATION, |written| {
        written.number(annotation::NAME, argument);
        written.number(kind, value);
    });
}

fn flow_field(flow: FlowEnd) -> u32 {
    match flow.side {
        FlowSide::Tail => field::FLOWS,
        // A call can lead to more than one piece of work, so no head is known to be the last.
        FlowSide::Head if flow.kind == FlowKind::Launch => field::FLOWS,
        FlowSide::Head => field::LAST_FLOWS,
    }
}

/// Arrows of different kinds have different numbers.
fn flow_number(flow: FlowEnd) -> u64 {
    let kind = match flow.kind {
        FlowKind::Backward => 0,
        FlowKind::Launch => 1 << 32,
    };
    kind | u64::from(flow.number)
}

fn add_text(news: &mut Message, field: u32, id: u64, text: &str) {
    news.message(field, |entry| {
        entry.number(interned::ID, id).text(interned::TEXT, text);
    });
}
