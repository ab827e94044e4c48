//! Makes a profile from the events of a trace, as they come by.

use mindprof_model::{
    Category, DeviceKind, Event, Flags, InputsEncoder, InputsId, LossCause, Nanos, Profile,
    ProfileBuilder, ScopeKind, StringId, StringTable, Thread, ThreadId,
};
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use super::category;
use super::event::{RawArguments, RawEvent, text_of};
use super::time::parse_microseconds;
use crate::Result;

/// The parts of a profile so far. Times are relative to the trace's base until all are known.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) profile: ProfileBuilder,
    pub(super) base_ns: u64,
    /// Where the window begins and how long it is, if the trace says so.
    window: Option<(i64, Nanos)>,
    /// Events with their starts since the base, which may be before it.
    events: Vec<(i64, Event)>,
    tracks: FxHashMap<(DeviceKind, Label, Label), ThreadId>,
    threads: Vec<(Label, Label, DeviceKind)>,
    thread_names: FxHashMap<(Label, Label), StringId>,
    inputs: FxHashMap<String, InputsId>,
    encoder: InputsEncoder,
}

/// A process or thread as a trace names it: mostly a number, sometimes a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Label {
    Number(i64),
    Text(StringId),
}

impl Label {
    /// Returns the number; of a text, the number of the text.
    fn number(self) -> u64 {
        match self {
            Self::Number(number) => number as u64,
            Self::Text(text) => u64::from(text.to_raw()),
        }
    }
}

impl Collector {
    /// Takes what a profile keeps of one event.
    pub(super) fn add(&mut self, event: &RawEvent<'_>) {
        match event.phase.0.as_ref() {
            "X" => self.add_complete(event),
            "M" if event.name.0 == "thread_name" => self.add_thread_name(event),
            _ => {}
        }
    }

    /// Builds the profile: the window's start becomes time zero, or the first event if that is earlier.
    pub(super) fn build(mut self) -> Result<Profile> {
        let first = self.events.iter().map(|(start, _)| *start).min();
        let window = self.window.map(|(start, _)| start);
        let zero = [first, window].into_iter().flatten().min().unwrap_or(0);
        let reference = i128::from(self.base_ns) + i128::from(zero);
        self.profile.reference_unix_ns = u64::try_from(reference).unwrap_or(0);
        if let Some((start, span)) = self.window {
            self.profile.span = Nanos(start.wrapping_sub(zero) as u64 + span.0);
        }
        self.add_threads();
        let since_zero = |(start, mut event): (i64, Event)| {
            event.start = Nanos(start.abs_diff(zero));
            event
        };
        let events = self.events.into_iter().map(since_zero).collect();
        self.profile.add_events(events);
        Ok(self.profile.build()?)
    }

    fn add_complete(&mut self, event: &RawEvent<'_>) {
        let Some((mut start, mut duration)) = interval(event) else {
            self.profile.add_loss(LossCause::Damaged, 1);
            return;
        };
        let category_name = event.category.as_ref().map(|text| text.0.as_ref());
        if category_name == Some(category::WINDOW) {
            self.window = Some((start, duration));
            return;
        }
        let process = self.label(event.process);
        let thread = self.label(event.thread);
        let (category, device) = match category_name {
            Some(name) => category::from_name(name),
            // The older exporter of torch's event lists writes operators without a category.
            None if self.is_event_list(process) => (Category::Operator, DeviceKind::Cpu),
            None => (Category::Other, DeviceKind::Cpu),
        };
        if category == Category::DeviceAnnotation {
            start += category::DEVICE_ANNOTATION_MARGIN as i64;
            duration = duration.saturating_sub(Nanos(2 * category::DEVICE_ANNOTATION_MARGIN));
        }
        let name = self.profile.strings.intern(&event.name.0);
        let track = self.track(device, process, thread);
        let mut kept = Event::new(category, name, track, Nanos::ZERO, duration);
        if category::is_hidden(&event.name.0) {
            kept.flags = kept.flags.union(Flags::HIDDEN);
        }
        if matches!(category, Category::Operator | Category::Annotation) {
            self.add_arguments(&mut kept, event);
        }
        self.events.push((start, kept));
    }

    fn add_arguments(&mut self, kept: &mut Event, event: &RawEvent<'_>) {
        let arguments = RawArguments::of(event);
        let is = |value: Option<&RawValue>, text| value.is_some_and(|value| value.get() == text);
        if is(arguments.finished, "false") {
            kept.flags = kept.flags.union(Flags::UNFINISHED);
        }
        if is(arguments.asynchronous, "true") {
            kept.flags = kept.flags.union(Flags::ASYNC);
        }
        let number = |value: Option<&RawValue>| value.and_then(|value| value.get().parse().ok());
        let sequence: Option<u32> = number(arguments.sequence);
        let forward_thread = number(arguments.forward_thread).unwrap_or(0);
        kept.set_sequence(sequence);
        if forward_thread > 0 && !category::is_backward_wrapper(&event.name.0) {
            kept.scope = ScopeKind::Backward;
        }
        if arguments.inputs.dims.is_some() {
            kept.inputs = self.intern_inputs(&arguments);
        }
    }

    /// Understands each distinct text of inputs once.
    fn intern_inputs(&mut self, arguments: &RawArguments<'_>) -> InputsId {
        let fingerprint = arguments.inputs.fingerprint();
        if let Some(&id) = self.inputs.get(&fingerprint) {
            return id;
        }
        self.encoder.clear();
        arguments.inputs.encode(&mut self.encoder);
        let id = self.profile.inputs.intern(self.encoder.words());
        self.inputs.insert(fingerprint, id);
        id
    }

    fn add_thread_name(&mut self, event: &RawEvent<'_>) {
        let arguments = RawArguments::of(event);
        let Some(name) = arguments.name.and_then(text_of) else {
            return;
        };
        let key = (self.label(event.process), self.label(event.thread));
        let name = self.profile.strings.intern(bare_thread_name(&name));
        self.thread_names.insert(key, name);
    }

    fn is_event_list(&self, process: Label) -> bool {
        match process {
            Label::Number(_) => false,
            Label::Text(text) => self.profile.strings.text(text) == "CPU functions",
        }
    }

    fn label(&mut self, raw: Option<&RawValue>) -> Label {
        let Some(raw) = raw else {
            return Label::Number(0);
        };
        let text = text_of(raw).unwrap_or(raw.get().into());
        match text.parse() {
            Ok(number) => Label::Number(number),
            Err(_) => Label::Text(self.profile.strings.intern(&text)),
        }
    }

    fn track(&mut self, device: DeviceKind, process: Label, thread: Label) -> ThreadId {
        let next = ThreadId::from_index(self.threads.len());
        let id = *self.tracks.entry((device, process, thread)).or_insert(next);
        if id == next {
            self.threads.push((process, thread, device));
        }
        id
    }

    fn add_threads(&mut self) {
        for (process, thread, device) in std::mem::take(&mut self.threads) {
            let said = self.thread_names.get(&(process, thread)).copied();
            let label = match thread {
                Label::Number(_) => StringTable::EMPTY,
                Label::Text(text) => text,
            };
            self.profile.add_thread(Thread {
                process: process.number(),
                native: thread.number(),
                name: said.unwrap_or(label),
                device,
            });
        }
    }
}

/// Returns start and duration, if they are times and the end is one too.
fn interval(event: &RawEvent<'_>) -> Option<(i64, Nanos)> {
    let start = parse_microseconds(event.start?.get())?;
    let duration = event
        .duration
        .map_or(Some(0), |raw| parse_microseconds(raw.get()))?;
    // Half the range, so that no difference of two times can overflow.
    let limit = i64::MAX / 2;
    let fits = start.abs() <= limit && (0..=limit).contains(&duration);
    fits.then_some((start, Nanos(duration as u64)))
}

/// Takes the name out of `thread 12 (name)`, which is how a trace shows it.
fn bare_thread_name(shown: &str) -> &str {
    let Some(rest) = shown.strip_prefix("thread ") else {
        return shown;
    };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    match rest
        .strip_prefix(" (")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        Some(name) => name,
        None if rest.is_empty() => "",
        None => shown,
    }
}
