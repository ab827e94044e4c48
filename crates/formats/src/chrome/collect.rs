//! Makes a profile from the events of a trace, as they come by.

use mindprof_model::{
    Category, DeviceKind, Event, Flags, InputsEncoder, InputsId, Links, LossCause, MemoryRecord,
    Nanos, Profile, ProfileBuilder, ScopeKind, StackId, StringId, StringTable, Thread, ThreadId,
};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;

use self::python::PythonCalls;
use super::category;
use super::event::{RawArguments, RawEvent, number_of, text_of};
use super::time::parse_microseconds;
use crate::Result;

mod python;

/// The parts of a profile so far. Times are relative to the trace's base until all are known.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) profile: ProfileBuilder,
    pub(super) base_ns: u64,
    /// Where the window begins and how long it is, if the trace says so.
    window: Option<(i64, Nanos)>,
    events: Vec<Collected>,
    /// Memory records with their times since the base.
    memory: Vec<(i64, MemoryRecord)>,
    tracks: FxHashMap<(DeviceKind, Label, Label), ThreadId>,
    /// The threads that spare tracks belong to, by process and track.
    spare_tracks: FxHashMap<(Label, Label), Label>,
    threads: Vec<(Label, Label, DeviceKind)>,
    thread_names: FxHashMap<(Label, Label), StringId>,
    /// The kind of the devices, where a category says that it is not CUDA.
    device: Option<DeviceKind>,
    inputs: FxHashMap<String, InputsId>,
    stacks: FxHashMap<Box<str>, StackId>,
    python: PythonCalls,
    encoder: InputsEncoder,
}

/// One event with what is settled when all are known.
struct Collected {
    /// Since the base, and maybe before it.
    start: i64,
    event: Event,
    external: u32,
    correlation: u32,
    /// The number of the forward thread, zero where there is none.
    forward: u32,
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
            "i" if event.name.0 == category::MEMORY => self.add_memory(event),
            "M" if event.name.0 == "thread_name" => self.add_thread_name(event),
            _ => {}
        }
    }

    /// Builds the profile: the window's start becomes time zero, or the first event if that is earlier.
    pub(super) fn build(mut self) -> Result<Profile> {
        let starts = self.events.iter().map(|event| event.start);
        let first = starts
            .chain(self.memory.iter().map(|(time, _)| *time))
            .min();
        let window = self.window.map(|(start, _)| start);
        let zero = [first, window].into_iter().flatten().min().unwrap_or(0);
        let reference = i128::from(self.base_ns) + i128::from(zero);
        self.profile.reference_unix_ns = u64::try_from(reference).unwrap_or(0);
        if let Some((start, span)) = self.window {
            self.profile.span = Nanos(start.wrapping_sub(zero) as u64 + span.0);
        }
        let events = self.events.iter_mut().map(|collected| &mut collected.event);
        self.python.fill_stacks(events, &mut self.profile.stacks);
        self.find_backward_nodes();
        self.add_threads();
        self.add_events(zero);
        for (time, mut record) in std::mem::take(&mut self.memory) {
            record.time = Nanos(time.abs_diff(zero));
            self.profile.add_memory(record);
        }
        Ok(self.profile.build()?)
    }

    /// Not every backward node says where its forward ran; but each has a wrapper that ends in its name.
    fn find_backward_nodes(&mut self) {
        let strings = &self.profile.strings;
        let wrapped = strings.iter().filter_map(category::wrapped_node);
        let nodes: FxHashSet<StringId> = wrapped.filter_map(|name| strings.find(name)).collect();
        for collected in &mut self.events {
            let event = &mut collected.event;
            if event.category == Category::Operator && nodes.contains(&event.name) {
                event.scope = ScopeKind::Backward;
            }
        }
    }

    fn add_events(&mut self, zero: i64) {
        let threads = self.threads_by_number();
        for mut collected in std::mem::take(&mut self.events) {
            collected.event.start = Nanos(collected.start.abs_diff(zero));
            let mut links = Links::new(collected.external, collected.correlation);
            let number = (collected.forward as usize).checked_sub(1);
            links.set_forward_thread(number.and_then(|number| threads.get(number)).copied());
            if links == Links::default() {
                self.profile.add_event(collected.event);
            } else {
                self.profile.add_linked_event(collected.event, links);
            }
        }
    }

    /// Returns the host's threads in the order in which they began to work, which is how they are numbered.
    fn threads_by_number(&self) -> Vec<ThreadId> {
        let mut first: FxHashMap<ThreadId, i64> = FxHashMap::default();
        for collected in &self.events {
            let of_host = matches!(
                collected.event.category,
                Category::Operator | Category::Annotation | Category::PythonFunction
            );
            if of_host {
                let start = first.entry(collected.event.thread).or_insert(i64::MAX);
                *start = collected.start.min(*start);
            }
        }
        let mut threads: Vec<_> = first.into_iter().collect();
        threads.sort_unstable_by_key(|&(thread, start)| (start, thread));
        threads.into_iter().map(|(thread, _)| thread).collect()
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
        self.device = self
            .device
            .or_else(|| category::other_device(category_name?));
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
        let arguments = RawArguments::of(event);
        let is_scope = matches!(category, Category::Operator | Category::Annotation);
        if is_scope {
            self.add_arguments(&mut kept, event, &arguments);
        }
        if category == Category::PythonFunction {
            kept.stack = self.intern_stack(arguments.call_stack);
            self.python.add(self.events.len(), &arguments);
        }
        self.events.push(Collected {
            start,
            event: kept,
            external: number_of(arguments.external),
            correlation: number_of(arguments.correlation),
            forward: if is_scope {
                number_of(arguments.forward_thread)
            } else {
                0
            },
        });
    }

    fn add_arguments(
        &mut self,
        kept: &mut Event,
        event: &RawEvent<'_>,
        arguments: &RawArguments<'_>,
    ) {
        let is = |value: Option<&RawValue>, text| value.is_some_and(|value| value.get() == text);
        if is(arguments.finished, "false") {
            kept.flags = kept.flags.union(Flags::UNFINISHED);
        }
        if is(arguments.asynchronous, "true") {
            kept.flags = kept.flags.union(Flags::ASYNC);
        }
        let sequence = arguments
            .sequence
            .and_then(|value| value.get().parse().ok());
        kept.set_sequence(sequence);
        let forward_thread: u64 = number_of(arguments.forward_thread);
        if forward_thread > 0 && !category::is_backward_wrapper(&event.name.0) {
            kept.scope = ScopeKind::Backward;
        }
        if arguments.inputs.dims.is_some() {
            kept.inputs = self.intern_inputs(arguments);
        }
        kept.stack = self.intern_stack(arguments.call_stack);
    }

    fn add_memory(&mut self, event: &RawEvent<'_>) {
        let Some((time, _)) = interval(event) else {
            self.profile.add_loss(LossCause::Damaged, 1);
            return;
        };
        let arguments = RawArguments::of(event);
        let (process, thread) = (self.label(event.process), self.label(event.thread));
        let device = DeviceKind::from_number(number_of(arguments.memory.device));
        let record = MemoryRecord {
            time: Nanos::ZERO,
            address: number_of(arguments.memory.address),
            bytes: number_of(arguments.memory.bytes),
            total_allocated: number_of(arguments.memory.total_allocated),
            total_reserved: number_of(arguments.memory.total_reserved),
            thread: self.track(DeviceKind::Cpu, process, thread),
            stack: self.intern_stack(arguments.call_stack),
            device: device.unwrap_or(DeviceKind::Meta),
            device_index: number_of(arguments.memory.device_index),
        };
        self.memory.push((time, record));
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

    /// Understands each distinct text of a stack once: frames with a `;` behind each, innermost first.
    fn intern_stack(&mut self, raw: Option<&RawValue>) -> StackId {
        let Some(raw) = raw else {
            return StackId::NONE;
        };
        if let Some(&known) = self.stacks.get(raw.get()) {
            return known;
        }
        let text = text_of(raw).unwrap_or_default();
        let mut stack = StackId::NONE;
        for frame in text.rsplit(';').filter(|frame| !frame.is_empty()) {
            let frame = self.profile.strings.intern(frame);
            stack = self.profile.stacks.push(stack, frame);
        }
        self.stacks.insert(raw.get().into(), stack);
        stack
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

    /// Takes the events of a track for events of the thread `of`.
    pub(super) fn add_spare_track(&mut self, process: i64, track: i64, of: i64) {
        let [process, track, of] = [process, track, of].map(Label::Number);
        self.spare_tracks.insert((process, track), of);
    }

    fn track(&mut self, device: DeviceKind, process: Label, thread: Label) -> ThreadId {
        let thread = *self.spare_tracks.get(&(process, thread)).unwrap_or(&thread);
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
            let on_host = device == DeviceKind::Cpu;
            self.profile.add_thread(Thread {
                process: process.number(),
                native: thread.number(),
                name: said.unwrap_or(label),
                device: self.device.filter(|_| !on_host).unwrap_or(device),
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
