//! Makes a profile from the events of a trace, as they come by.

use mindprof_model::{
    Category, DeviceKind, Event, Flags, InputsEncoder, InputsId, Links, LossCause, MemoryRecord,
    Nanos, ProfileBuilder, ScopeKind, StackId, ThreadId,
};
use rustc_hash::FxHashMap;

use self::meaning::{Meanings, Role};
use self::python::PythonCalls;
use self::spans::Spans;
use self::tensors::Tensors;
use self::tracks::Tracks;
use super::category;
use super::event::{RawArguments, RawEvent, Texts, integer_of, number_of};
use super::inputs::RawInputs;
use super::left_out::LeftOut;
use super::repairs::{Repair, Repairs};
use crate::scan::Fragment;

mod build;
mod facts;
mod meaning;
mod order;
mod python;
mod spans;
mod tensors;
mod times;
mod tracks;

/// The parts of a profile so far.
///
/// Times are relative to the trace's base until all are known, and may lie before it: until then
/// the starts of events and the times of memory records hold the bits of signed numbers.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) profile: ProfileBuilder,
    pub(super) base_ns: u64,
    pub(super) repairs: Repairs,
    left_out: LeftOut,
    /// Where the window begins and how long it is, if the trace says so.
    window: Option<(i64, Nanos)>,
    events: Vec<Event>,
    /// As long as the events, or empty while no event has any.
    links: Vec<Links>,
    memory: Vec<MemoryRecord>,
    tensors: Tensors,
    tracks: Tracks,
    /// The kind of the devices, where a category says that it is not CUDA.
    device: Option<DeviceKind>,
    meanings: Meanings,
    inputs: FxHashMap<[Fragment; 5], InputsId>,
    python: PythonCalls,
    spans: Spans,
    encoder: InputsEncoder,
    /// Whether a time is finer than a microsecond.
    has_nanoseconds: bool,
}

impl Collector {
    /// Takes what a profile keeps of one event.
    pub(super) fn add(&mut self, event: &RawEvent<'_>, texts: &Texts) {
        match event.phase {
            b'X' => self.add_complete(event, texts),
            b'B' => self.add_begin(event, texts),
            b'E' => self.add_end(event, texts),
            b'i' | b'I' => self.add_instant(event, texts),
            b'M' => self.add_fact(event, texts),
            b's' | b't' | b'f' if is_told_otherwise(event, texts) => {}
            0 => self.repairs.add(Repair::NotAnEvent, 1),
            phase => self.left_out.add(phase),
        }
    }

    /// Takes the events of a track for events of the thread `of`.
    pub(super) fn add_spare_track(&mut self, process: i64, track: i64, of: i64) {
        self.tracks.add_spare(process, track, of);
    }

    /// Counts an event that could not be read.
    pub(super) fn add_damage(&mut self, repair: Repair) {
        self.repairs.add(repair, 1);
        self.profile.add_loss(LossCause::Damaged, 1);
    }

    fn add_complete(&mut self, event: &RawEvent<'_>, texts: &Texts) {
        let Some((start, duration)) = self.interval(event) else {
            return;
        };
        self.add_interval(event, texts, start, duration);
    }

    fn add_begin(&mut self, event: &RawEvent<'_>, texts: &Texts) {
        let Some(start) = self.time(event.start) else {
            return;
        };
        let index = self.events.len();
        self.add_interval(event, texts, start, Nanos::ZERO);
        if let Some(added) = self.events.get(index) {
            self.spans.begin(start, added.thread, index);
        }
    }

    fn add_end(&mut self, event: &RawEvent<'_>, texts: &Texts) {
        let Some(time) = self.time(event.start) else {
            return;
        };
        let device = self.meanings.category(event.category, texts).device;
        let strings = &mut self.profile.strings;
        let thread = self
            .tracks
            .track(device, event.process, event.thread, strings);
        self.spans.end(time, thread);
    }

    fn add_interval(
        &mut self,
        event: &RawEvent<'_>,
        texts: &Texts,
        mut start: i64,
        mut duration: Nanos,
    ) {
        let meant = self.meanings.category(event.category, texts);
        if meant.is_window {
            self.window = Some((start, duration));
            return;
        }
        let (mut category, device) = (meant.category, meant.device);
        // The older exporter of torch's event lists writes operators without a category.
        if event.category == Fragment::NONE && event.process == b"\"CPU functions\"" {
            category = Category::Operator;
        }
        self.device = self.device.or(meant.other_device);
        if category == Category::DeviceAnnotation {
            start += category::DEVICE_ANNOTATION_MARGIN as i64;
            duration = duration.saturating_sub(Nanos(2 * category::DEVICE_ANNOTATION_MARGIN));
        }
        let strings = &mut self.profile.strings;
        let name = self.meanings.name(event.name, texts, strings);
        let track = self
            .tracks
            .track(device, event.process, event.thread, strings);
        let mut kept = Event::new(category, name.string, track, Nanos(start as u64), duration);
        if name.role.is_hidden() {
            kept.flags = kept.flags.union(Flags::HIDDEN);
        }
        let arguments = &event.arguments;
        let mut links = Links::new(
            number_of(arguments.external),
            number_of(arguments.correlation),
        );
        if matches!(category, Category::Operator | Category::Annotation) {
            let forward: u32 = number_of(arguments.forward_thread);
            links.set_forward_thread(forward.checked_sub(1).map(ThreadId::from_raw));
            if number_of::<u64>(arguments.forward_thread) > 0 && name.role != Role::BackwardWrapper
            {
                kept.scope = ScopeKind::Backward;
            }
            self.add_arguments(&mut kept, arguments, texts);
        }
        if category == Category::PythonFunction {
            kept.stack = self.stack(arguments.call_stack, texts);
            let call = python::Call {
                event: self.events.len() as u32,
                number: number_of(arguments.python),
                caller: number_of(arguments.python_parent),
            };
            self.python.add(call, &mut kept, &mut self.profile.stacks);
        }
        let tensors = &mut self.tensors;
        if !arguments.storages.is_empty() {
            tensors.add_storages(self.events.len(), arguments.storages);
        }
        if !arguments.roles.is_empty() {
            tensors.add_roles(track, start, arguments.roles);
        }
        self.push(kept, links);
    }

    fn push(&mut self, event: Event, links: Links) {
        if links != Links::default() || !self.links.is_empty() {
            self.links.resize(self.events.len(), Links::default());
            self.links.push(links);
        }
        self.events.push(event);
    }

    fn add_arguments(&mut self, kept: &mut Event, arguments: &RawArguments<'_>, texts: &Texts) {
        if arguments.finished == b"false" {
            kept.flags = kept.flags.union(Flags::UNFINISHED);
        }
        if arguments.asynchronous == b"true" {
            kept.flags = kept.flags.union(Flags::ASYNC);
        }
        kept.set_sequence(integer_of(arguments.sequence));
        kept.inputs = self.inputs(arguments.inputs, texts);
        kept.stack = self.stack(arguments.call_stack, texts);
    }

    /// Takes a moment: memory, or what becomes an event without a duration.
    fn add_instant(&mut self, event: &RawEvent<'_>, texts: &Texts) {
        let strings = &mut self.profile.strings;
        let name = self.meanings.name(event.name, texts, strings);
        if name.role == Role::Mark && event.category == Fragment::NONE {
            return;
        }
        let Some(time) = self.time(event.start) else {
            return;
        };
        if name.role == Role::Memory && event.phase == b'i' {
            self.add_memory(event, texts, time);
        } else {
            self.add_interval(event, texts, time, Nanos::ZERO);
        }
    }

    fn add_memory(&mut self, event: &RawEvent<'_>, texts: &Texts, time: i64) {
        let said = &event.arguments.memory;
        let strings = &mut self.profile.strings;
        let record = MemoryRecord {
            time: Nanos(time as u64),
            address: number_of(said.address),
            bytes: number_of(said.bytes),
            total_allocated: number_of(said.total_allocated),
            total_reserved: number_of(said.total_reserved),
            thread: self
                .tracks
                .track(DeviceKind::Cpu, event.process, event.thread, strings),
            stack: self.stack(event.arguments.call_stack, texts),
            device: DeviceKind::from_number(number_of(said.device)).unwrap_or(DeviceKind::Meta),
            device_index: number_of(said.device_index),
        };
        self.memory.push(record);
    }

    /// Understands each distinct text of inputs once.
    fn inputs(&mut self, lists: [Fragment; 5], texts: &Texts) -> InputsId {
        if lists[0] == Fragment::NONE {
            return InputsId::NONE;
        }
        if let Some(&id) = self.inputs.get(&lists) {
            return id;
        }
        let [dims, types, strides, values, list_types] = lists.map(|list| texts.text(list));
        let raw = RawInputs {
            dims,
            types,
            strides,
            values,
            list_types,
        };
        self.encoder.clear();
        raw.encode(&mut self.encoder);
        let id = self.profile.inputs.intern(self.encoder.words());
        self.inputs.insert(lists, id);
        id
    }

    fn stack(&mut self, fragment: Fragment, texts: &Texts) -> StackId {
        if fragment == Fragment::NONE {
            return StackId::NONE;
        }
        self.meanings.stack(fragment, texts, &mut self.profile)
    }
}

/// Returns whether the profile tells by other means what a flow says.
fn is_told_otherwise(event: &RawEvent<'_>, texts: &Texts) -> bool {
    matches!(texts.text(event.category), b"\"fwdbwd\"" | b"\"ac2g\"")
}
