//! One sequence of packets: what its readers remember, and what therefore needs no second telling.
//!
//! Names are told once, times are differences, and the track is the default, so that beginning and
//! ending a slice takes some thirty bytes together before they are compressed.

use mindprof_model::{Category, Event, Flags, InputsId, Nanos, Profile, StackId, StringId, TextId};
use rustc_hash::FxHashMap;

use super::annotations::Annotations;
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
const ARGUMENTS: [&str; 7] = [
    "Concrete Inputs",
    "Input type",
    "Input Strides",
    "Input Dims",
    "Call stack",
    "Sequence number",
    "finished",
];
const CALL_STACK: u64 = 5;
const SEQUENCE_NUMBER: u64 = 6;
const FINISHED: u64 = 7;

/// What is said of an event beyond what is known of it.
#[derive(Clone, Copy, Default)]
pub(super) struct Said {
    pub(super) category: Option<TextId>,
    pub(super) fields: Option<TextId>,
    pub(super) arguments: Option<TextId>,
}

/// An event as another tool wrote it.
pub(super) struct Foreign<'a> {
    pub(super) kind: u64,
    pub(super) track: u64,
    pub(super) category: &'a str,
    pub(super) name: &'a str,
    /// Entries of a JSON object.
    pub(super) arguments: &'a str,
    /// The arrow that it is an end of.
    pub(super) flow: Option<(u64, FlowSide)>,
}

/// The state of a sequence.
pub(super) struct Sequence<'a> {
    profile: &'a Profile,
    pub(super) id: u64,
    now: Nanos,
    /// The ends of the slices that are open, the outermost first.
    open: Vec<Nanos>,
    names: FxHashMap<(StringId, Category), (u64, u64)>,
    categories: Vec<String>,
    inputs: FxHashMap<InputsId, u64>,
    stacks: FxHashMap<StackId, u64>,
    texts: u64,
    annotations: Annotations,
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
            annotations: Annotations::new(ARGUMENTS.len() as u64 + 1),
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

    /// Fills the packet of a slice's beginning, or of a moment.
    pub(super) fn begin(
        &mut self,
        event: &Event,
        flow: Option<FlowEnd>,
        said: Said,
        packet: &mut Message,
    ) {
        let is_moment = event.flags.contains(Flags::INSTANT);
        if !is_moment {
            self.open.push(event.end());
        }
        self.news.clear();
        let (name, mut category) = self.intern_name(event);
        let extras = self.profile.extras();
        if let Some(text) = said.category {
            let text = extras.texts.text(text);
            category = self.intern_category(&serde_json::from_str(&text).unwrap_or(text));
        }
        let inputs = self.intern_inputs(event.inputs);
        let stack = self.intern_stack(event);
        self.at(event.start, packet);
        let arguments = said.arguments.map(|text| extras.texts.text(text));
        let is_free = |name: &str| {
            let is_in = |arguments: &str| arguments.contains(&format!("\"{name}\":"));
            !arguments.as_deref().is_some_and(is_in)
        };
        packet.message(trace::TRACK_EVENT, |slice| {
            let kind = if is_moment {
                field::INSTANT
            } else {
                field::BEGIN
            };
            slice.number(field::TYPE, kind);
            slice.number(field::CATEGORY, category);
            slice.number(field::NAME, name);
            for (argument, text) in (1..=4).zip(inputs.into_iter().flat_map(|first| first..)) {
                if is_free(ARGUMENTS[argument as usize - 1]) {
                    annotate(slice, argument, annotation::INTERNED_TEXT, text);
                }
            }
            if let Some(stack) = stack {
                annotate(slice, CALL_STACK, annotation::INTERNED_TEXT, stack);
            }
            if let Some(sequence) = event.sequence() {
                annotate(slice, SEQUENCE_NUMBER, annotation::NUMBER, sequence.into());
            }
            if event.flags.contains(Flags::UNFINISHED) && is_free("finished") {
                annotate(slice, FINISHED, annotation::TRUTH, 0);
            }
            for text in [said.arguments, said.fields].into_iter().flatten() {
                let kept = (extras, text);
                let (texts, news) = (&mut self.texts, &mut self.news);
                self.annotations.push(kept, texts, news, slice);
            }
            if let Some(flow) = flow {
                slice.fixed(flow_field(flow), flow_number(flow));
            }
        });
        self.tell_news(packet);
    }

    /// Fills the packet of an event that another tool wrote, on any track.
    pub(super) fn foreign(&mut self, time: Nanos, event: &Foreign<'_>, packet: &mut Message) {
        self.news.clear();
        self.at(time, packet);
        packet.message(trace::TRACK_EVENT, |written| {
            written.number(field::TYPE, event.kind);
            written.number(field::TRACK, event.track);
            if !event.category.is_empty() {
                written.text(field::CATEGORY_TEXT, event.category);
            }
            written.text(field::NAME_TEXT, event.name);
            let (texts, news) = (&mut self.texts, &mut self.news);
            self.annotations
                .push_entries(event.arguments, texts, news, written);
            match event.flow {
                Some((flow, FlowSide::Head)) => drop(written.fixed(field::LAST_FLOWS, flow)),
                Some((flow, FlowSide::Tail)) => drop(written.fixed(field::FLOWS, flow)),
                None => {}
            }
        });
        self.tell_news(packet);
    }

    fn tell_news(&self, packet: &mut Message) {
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

    /// Fills the packet of a counter's value that may be no whole number.
    pub(super) fn count_float(
        &mut self,
        time: Nanos,
        track: u64,
        value: f64,
        packet: &mut Message,
    ) {
        self.at(time, packet);
        packet.message(trace::TRACK_EVENT, |event| {
            event.number(field::TYPE, field::COUNTER);
            event.number(field::TRACK, track);
            event.fixed(field::FLOAT_COUNTER_VALUE, value.to_bits());
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
        let category = self.intern_category(category);
        let ids = (self.names.len() as u64 + 1, category);
        self.names.insert(key, ids);
        add_text(&mut self.news, interned::NAMES, ids.0, name);
        ids
    }

    fn intern_category(&mut self, category: &str) -> u64 {
        let position = self.categories.iter().position(|known| known == category);
        let position = position.unwrap_or_else(|| {
            self.categories.push(category.into());
            let id = self.categories.len();
            add_text(&mut self.news, interned::CATEGORIES, id as u64, category);
            id - 1
        });
        position as u64 + 1
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

pub(super) fn add_text(news: &mut Message, field: u32, id: u64, text: &str) {
    news.message(field, |entry| {
        entry.number(interned::ID, id).text(interned::TEXT, text);
    });
}
