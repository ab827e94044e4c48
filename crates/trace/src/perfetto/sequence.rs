//! One sequence of packets, with the state that its readers remember.
//!
//! Names are interned, times are differences, and the track is the default, so that the start and
//! end of a slice take up about thirty bytes together before compression.

use mindprof_analyze::{FlowEnd, FlowKind, FlowSide};
use mindprof_model::{
    Category, Event, Flags, InputsId, Links, Nanos, Profile, StackId, StringId, TextId,
    activity_name,
};
use rustc_hash::FxHashMap;

use super::annotations::Annotations;
use super::arguments::{
    ARGUMENTS, CALL_STACK, CORRELATION, EXTERNAL_ID, FINISHED, SEQUENCE_NUMBER, add_text, annotate,
};
use super::fields::{annotation, event as field, interned, trace};
use super::message::Message;
use crate::chrome::inputs_lists;

const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// The clocks: the trace's own, the wall clock, and one per sequence with incremental time stamps.
const BOOT_CLOCK: u64 = 6;
const WALL_CLOCK: u64 = 1;
const DIFFERENCE_CLOCK: u64 = 64;

/// The data of an event beside the event itself: its correlation ids, and its kept arguments.
#[derive(Clone, Copy, Default)]
pub(super) struct Said {
    pub(super) links: Links,
    pub(super) category: Option<TextId>,
    pub(super) fields: Option<TextId>,
    pub(super) arguments: Option<TextId>,
}

/// The state of a sequence.
///
/// The writer opens one for each track of slices, and one for memory.
pub(super) struct Sequence<'a> {
    pub(super) profile: &'a Profile,
    pub(super) id: u64,
    now: Nanos,
    /// The ends of the open slices, the outermost first.
    open: Vec<Nanos>,
    names: FxHashMap<(StringId, Category), (u64, u64)>,
    pub(super) categories: Vec<String>,
    inputs: FxHashMap<InputsId, u64>,
    stacks: FxHashMap<StackId, u64>,
    pub(super) texts: u64,
    pub(super) annotations: Annotations,
    /// The interned data of the next packet.
    pub(super) news: Message,
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

    /// Returns the id of the sequence's track.
    pub(super) fn track(&self) -> u64 {
        self.id << 1 | 1
    }

    /// Fills the packet with the defaults of the sequence: its clock, its track and the names of
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

    /// Closes the innermost slice if it has ended by `time`, and returns its end.
    pub(super) fn close_before(&mut self, time: Nanos) -> Option<Nanos> {
        self.open.pop_if(|end| *end <= time)
    }

    /// Fills the packet of the end of a slice.
    pub(super) fn end(&mut self, end: Nanos, packet: &mut Message) {
        self.at(end, packet);
        packet.message(trace::TRACK_EVENT, |event| {
            event.number(field::TYPE, field::END);
        });
    }

    /// Fills the packet of the start of a slice, or of an instant.
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
        let passthrough = self.profile.passthrough();
        if let Some(text) = said.category {
            let text = passthrough.texts.text(text);
            category = self.intern_category(&serde_json::from_str(&text).unwrap_or(text));
        }
        let inputs = self.intern_inputs(event.inputs);
        // Python functions nest within their callers, so their stacks are visible anyway.
        let is_seen = event.category == Category::PythonFunction;
        let stack = (!is_seen).then(|| self.intern_stack(event.stack)).flatten();
        self.at(event.start, packet);
        let arguments = said.arguments.map(|text| passthrough.texts.text(text));
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
            let Links {
                external,
                correlation,
                ..
            } = said.links;
            for (argument, number) in [(EXTERNAL_ID, external), (CORRELATION, correlation)] {
                if number != 0 && is_free(ARGUMENTS[argument as usize - 1]) {
                    annotate(slice, argument, annotation::NUMBER, number.into());
                }
            }
            if event.flags.contains(Flags::UNFINISHED) && is_free("finished") {
                annotate(slice, FINISHED, annotation::TRUTH, 0);
            }
            for text in [said.arguments, said.fields].into_iter().flatten() {
                let kept = (passthrough, text);
                let (texts, news) = (&mut self.texts, &mut self.news);
                self.annotations.push(kept, texts, news, slice);
            }
            if let Some(flow) = flow {
                slice.fixed(flow_field(flow), flow_number(flow));
            }
        });
        self.tell_news(packet);
    }

    pub(super) fn tell_news(&self, packet: &mut Message) {
        if !self.news.as_bytes().is_empty() {
            packet.bytes(trace::INTERNED, self.news.as_bytes());
        }
    }

    pub(super) fn at(&mut self, time: Nanos, packet: &mut Message) {
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
        let category = activity_name(event.category, name, Some(thread.device));
        let category = self.intern_category(category);
        let ids = (self.names.len() as u64 + 1, category);
        self.names.insert(key, ids);
        add_text(&mut self.news, interned::NAMES, ids.0, name);
        ids
    }

    pub(super) fn intern_category(&mut self, category: &str) -> u64 {
        let position = self.categories.iter().position(|known| known == category);
        let position = position.unwrap_or_else(|| {
            self.categories.push(category.into());
            let id = self.categories.len();
            add_text(&mut self.news, interned::CATEGORIES, id as u64, category);
            id - 1
        });
        position as u64 + 1
    }

    /// Returns the id of the first of the four texts of a list of inputs.
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

    pub(super) fn intern_stack(&mut self, stack: StackId) -> Option<u64> {
        if stack == StackId::NONE {
            return None;
        }
        if let Some(&known) = self.stacks.get(&stack) {
            return Some(known);
        }
        let frames = self.profile.stacks().frames(stack);
        let frames: Vec<_> = frames
            .map(|frame| self.profile.strings().text(frame))
            .collect();
        let id = self.intern_text(&frames.join("\n"));
        self.stacks.insert(stack, id);
        Some(id)
    }

    fn intern_text(&mut self, text: &str) -> u64 {
        self.texts += 1;
        add_text(&mut self.news, interned::ANNOTATION_TEXTS, self.texts, text);
        self.texts
    }
}

fn flow_field(flow: FlowEnd) -> u32 {
    match flow.side {
        FlowSide::Tail => field::FLOWS,
        // A call can launch several pieces of work, so no flow end is known to be the last.
        FlowSide::Head if flow.kind == FlowKind::Launch => field::FLOWS,
        FlowSide::Head => field::LAST_FLOWS,
    }
}

/// Returns the id of a flow. Flows of different kinds have different ids.
fn flow_number(flow: FlowEnd) -> u64 {
    let kind = match flow.kind {
        FlowKind::Backward => 0,
        FlowKind::Launch => 1 << 32,
    };
    kind | u64::from(flow.number)
}
