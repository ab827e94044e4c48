//! Builds a part from the events of a trace, one event at a time.
//!
//! The scanner in `read` calls [`Collector::add`] for each event; `build` settles whatever depends
//! on all of them.

use mindprof_model::{
    Category, DeviceKind, Event, Flags, ForwardThread, InputsEncoder, InputsId, LinkColumns, Links,
    LossCause, MemoryRecord, Nanos, Part, PassthroughKind, StackId, is_step_event,
};
use rustc_hash::FxHashMap;
use serde_json::Value;

use self::ascend::Flows;
use self::ends::Amended;
use self::order::IsOrdered;
use self::passthrough::{OF_MEMORY, PassthroughStore, UnclaimedArgs};
use self::python::PythonCalls;
use self::spans::Spans;
use self::tensors::Tensors;
use self::tracks::Tracks;
use self::vocabulary::{Role, Vocabulary};
use super::category;
use super::event::{RawEvent, Rest, Texts};
use super::integer::{integer_of, is_integer, number_of};
use super::keys::{ArgumentKey, ArgumentKeys};
use crate::phase_counts::PhaseCounts;
use crate::read_options::UnknownArgs;
use crate::repairs::{Repair, Repairs};
use crate::scan::Fragment;

mod arguments;
mod ascend;
mod build;
mod ends;
mod facts;
mod order;
mod passthrough;
mod python;
mod spans;
mod template_cache;
mod tensors;
mod times;
mod tracks;
mod vocabulary;

pub(crate) use self::order::{apply as reorder, find as find_order};
pub(crate) use self::passthrough::each_entry;

/// The part so far.
///
/// Times are relative to the trace's base until all are known, and may lie before it: until then
/// the starts of events and the times of memory records hold the bits of signed numbers.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) part: Part,
    pub(super) base_ns: u64,
    pub(super) repairs: Repairs,
    left_out: PhaseCounts,
    set_aside: PhaseCounts,
    /// The start and length of the window, if the trace states them.
    window: Option<(i64, Nanos)>,
    events: Vec<Event>,
    earliest_start: Option<i64>,
    is_ordered: IsOrdered,
    links: LinkColumns,
    has_forward_threads: bool,
    has_device_events: bool,
    memory: Vec<MemoryRecord>,
    tensors: Tensors,
    tracks: Tracks,
    /// The kind of the devices, if a category states that it is not CUDA.
    device: Option<DeviceKind>,
    vocabulary: Vocabulary,
    /// Inputs by their five lists, with the lists that the inputs do not reproduce.
    inputs: FxHashMap<[Fragment; 5], (InputsId, ArgumentKeys)>,
    python: PythonCalls,
    spans: Spans,
    encoder: InputsEncoder,
    store: PassthroughStore,
    amended: Amended,
    flows: Flows,
    /// Whether any time is finer than a microsecond.
    has_nanoseconds: bool,
    /// The number of times that memory was reserved for the rest of the file.
    rooms: usize,
}

/// The fractions of the file after which the final sizes are extrapolated and memory is reserved.
/// Unused memory costs nothing, but growing later costs a copy.
const FORESIGHT: [f64; 3] = [1.0 / 256.0, 1.0 / 16.0, 1.0 / 4.0];
const ROOM_TO_SPARE: f64 = 1.2;

/// The largest plausible allocation, 4 TiB. Two million of them can still be summed.
const MOST_ALLOCATION_BYTES: u64 = 1 << 42;
/// The largest plausible total of a device or a process.
const MOST_TOTAL_BYTES: u64 = 1 << 50;

impl Collector {
    /// Adds one event. `rest` holds the fields and arguments that are not known.
    pub(super) fn add(&mut self, event: &RawEvent<'_>, texts: &Texts, rest: &Rest) {
        self.store.pass(event.whole.len());
        match event.phase {
            b'X' => self.add_complete(event, texts, rest),
            b'B' => self.add_begin(event, texts, rest),
            b'E' => self.add_end(event, texts, rest),
            phase if is_moment(phase) => self.add_instant(event, texts, rest),
            b'M' => self.add_fact(event, texts, rest),
            b's' | b't' | b'f' if is_told_otherwise(event, texts) => {}
            b's' | b'f' if self.add_ascend_flow(event, texts, rest) => {}
            phase if is_phase(phase) => self.keep_record(event, texts),
            _ => self.repairs.add(Repair::NotAnEvent, 1),
        }
    }

    /// Sets the kind of the devices.
    pub(super) fn set_device(&mut self, device: DeviceKind) {
        self.device = Some(device).filter(|&device| device != DeviceKind::Cpu);
    }

    /// Sets whether unknown fields and events are kept.
    pub(super) const fn set_unknown(&mut self, unknown: UnknownArgs) {
        self.store.unknown = unknown;
    }

    /// Reserves memory for the rest of the file, of which `part` was read.
    pub(super) fn make_room(&mut self, part: f64) {
        if FORESIGHT.get(self.rooms).is_none_or(|&next| part < next) {
            return;
        }
        self.rooms += 1;
        make_room_in(&mut self.events, part);
        make_room_in(&mut self.memory, part);
    }

    /// Assigns the events on an overflow track of a process to the thread `of`.
    pub(super) fn add_overflow_track(&mut self, [process, track, of]: [&Value; 3]) {
        let raw = [process, track, of].map(ToString::to_string);
        let strings = &mut self.part.strings;
        self.tracks
            .add_overflow(raw.each_ref().map(String::as_str), strings);
    }

    /// Counts an event that could not be read.
    pub(super) fn add_damage(&mut self, repair: Repair) {
        self.repairs.add(repair, 1);
        self.part.add_loss(LossCause::Damaged, 1);
    }

    fn add_complete(&mut self, event: &RawEvent<'_>, texts: &Texts, rest: &Rest) {
        let Some((start, duration)) = self.interval(event) else {
            return;
        };
        self.add_interval(event, texts, rest, (start, duration));
    }

    fn add_begin(&mut self, event: &RawEvent<'_>, texts: &Texts, rest: &Rest) {
        let Some(start) = self.time(event.start) else {
            return;
        };
        let index = self.events.len();
        self.add_interval(event, texts, rest, (start, Nanos::ZERO));
        // Its end is not known yet.
        self.is_ordered.forget();
        if let Some(added) = self.events.get(index) {
            self.spans.begin(start, added.thread, index);
        }
    }

    fn add_interval(
        &mut self,
        event: &RawEvent<'_>,
        texts: &Texts,
        rest: &Rest,
        (mut start, mut duration): (i64, Nanos),
    ) {
        let meaning = self.vocabulary.category(event.category, texts);
        let track = (event.process, event.thread);
        if meaning.is_window && category::WINDOW_TRACKS.contains(&track) {
            self.window = Some((start, duration));
            return;
        }
        let (mut category, device) = (meaning.category, meaning.device);
        // `EventList.export_chrome_trace` writes operators without a category.
        if event.category == Fragment::NONE && event.process == b"\"CPU functions\"" {
            category = Category::Operator;
        }
        self.device = self.device.or(meaning.other_device);
        if category == Category::DeviceAnnotation {
            start += category::DEVICE_ANNOTATION_MARGIN as i64;
            duration = duration.saturating_sub(Nanos(2 * category::DEVICE_ANNOTATION_MARGIN));
        }
        let strings = &mut self.part.strings;
        let name = self.vocabulary.name(event.name, texts, strings);
        if meaning.is_old && is_step_event(strings.text(name.string)) {
            category = Category::Annotation;
        }
        let track = self.tracks.track_of(device, event, strings);
        self.vocabulary.count_unknown(meaning);
        let mut kept = Event::new(category, name.string, track, Nanos(start as u64), duration);
        if name.role.is_hidden(category) {
            kept.flags = kept.flags.union(Flags::HIDDEN);
        }
        if is_moment(event.phase) {
            kept.flags = kept.flags.union(Flags::INSTANT);
        }
        let arguments = &event.arguments;
        let index = self.events.len();
        let mut links = Links::default();
        let mut left = self.add_arguments(&mut kept, &mut links, name.role, (arguments, texts));
        match category {
            Category::PythonFunction => left.add_all(self.add_call(&mut kept, arguments, texts)),
            Category::Runtime | Category::Kernel | Category::Other => {
                self.keep_category(event, texts, meaning, kept.name);
            }
            Category::Operator | Category::Annotation | Category::DeviceAnnotation => {}
        }
        let tensors = &mut self.tensors;
        let storages = arguments.value(ArgumentKey::Storages);
        if tensors.add_storages(index, storages) {
            left.remove(ArgumentKey::Storages);
        }
        if tensors.add_roles(track, start, arguments.value(ArgumentKey::Roles)) {
            left.remove(ArgumentKey::Roles);
        }
        self.keep_fields(index, rest);
        self.keep_arguments(&UnclaimedArgs {
            index,
            kind: PassthroughKind::Arguments,
            keys: left,
            arguments,
            texts,
            rest: &rest.arguments,
        });
        self.push(kept, links);
    }

    fn push(&mut self, event: Event, links: Links) {
        let start = event.start.0 as i64;
        self.earliest_start = Some(self.earliest_start.map_or(start, |first| first.min(start)));
        self.has_forward_threads |= links.forward_thread() != ForwardThread::Unknown;
        self.has_device_events |= is_of_device(event.category);
        self.is_ordered.add(start, event.duration);
        self.links.set(self.events.len(), links);
        self.events.push(event);
    }

    /// Adds an instant event: a memory record, or an event without a duration.
    fn add_instant(&mut self, event: &RawEvent<'_>, texts: &Texts, rest: &Rest) {
        let strings = &mut self.part.strings;
        let name = self.vocabulary.name(event.name, texts, strings);
        if name.role == Role::Mark && event.category == Fragment::NONE {
            return;
        }
        let Some(time) = self.time(event.start) else {
            return;
        };
        let bytes = event.arguments.value(ArgumentKey::Bytes);
        if name.role == Role::Memory && is_integer(bytes) {
            self.add_memory(event, texts, rest, time);
        } else {
            self.add_interval(event, texts, rest, (time, Nanos::ZERO));
        }
    }

    fn add_memory(&mut self, event: &RawEvent<'_>, texts: &Texts, rest: &Rest, time: i64) {
        let arguments = &event.arguments;
        let said = |key: ArgumentKey| arguments.value(key);
        // A number that does not fit exceeds the memory of any machine.
        let bytes: i64 = integer_of(said(ArgumentKey::Bytes)).unwrap_or(i64::MAX);
        let is_plausible = self.is_plausible(bytes.unsigned_abs(), MOST_ALLOCATION_BYTES);
        let [total_allocated, total_reserved] =
            [ArgumentKey::TotalAllocated, ArgumentKey::TotalReserved].map(|key| {
                let too_much = is_integer(said(key)) && integer_of::<u64>(said(key)).is_none();
                let total = if too_much {
                    u64::MAX
                } else {
                    number_of(said(key))
                };
                let is_plausible = self.is_plausible(total, MOST_TOTAL_BYTES);
                if is_plausible { total } else { 0 }
            });
        let strings = &mut self.part.strings;
        let record = MemoryRecord {
            time: Nanos(time as u64),
            address: number_of(said(ArgumentKey::Address)),
            bytes: if is_plausible { bytes } else { 0 },
            total_allocated,
            total_reserved,
            thread: self
                .tracks
                .track(DeviceKind::Cpu, event.process, event.thread, strings),
            stack: self.stack(arguments.text(ArgumentKey::CallStack), texts),
            device: DeviceKind::from_number(number_of(said(ArgumentKey::DeviceType)))
                .unwrap_or(DeviceKind::Meta),
            device_index: number_of(said(ArgumentKey::DeviceId)),
        };
        let mut left = arguments.said.without(OF_MEMORY);
        if arguments.said.contains(ArgumentKey::CallStack) && record.stack == StackId::NONE {
            left.add(ArgumentKey::CallStack);
        }
        self.keep_arguments(&UnclaimedArgs {
            index: self.memory.len(),
            kind: PassthroughKind::MemoryArguments,
            keys: left,
            arguments,
            texts,
            rest: &rest.arguments,
        });
        self.memory.push(record);
    }

    /// Returns whether a machine can have this much memory, and counts a repair otherwise.
    fn is_plausible(&mut self, bytes: u64, most: u64) -> bool {
        if bytes > most {
            self.repairs.add(Repair::AbsurdMemory, 1);
        }
        bytes <= most
    }
}

/// Returns whether events of a category are tied to others by correlation ids.
const fn is_of_device(category: Category) -> bool {
    match category {
        Category::Runtime | Category::Kernel | Category::DeviceAnnotation | Category::Other => true,
        Category::Operator | Category::Annotation | Category::PythonFunction => false,
    }
}

fn make_room_in<T>(rows: &mut Vec<T>, part: f64) {
    let foreseen = (rows.len() as f64 / part * ROOM_TO_SPARE) as usize;
    // If the reservation fails, the rows grow as they come.
    let _ = rows.try_reserve_exact(foreseen.saturating_sub(rows.len()));
}

/// Returns whether events of a phase have no duration.
const fn is_moment(phase: u8) -> bool {
    matches!(phase, b'i' | b'I')
}

/// Returns whether a byte can be the phase of an event. Zero stands for a missing phase, and bytes
/// of multi-byte characters or escapes would not round-trip.
fn is_phase(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

/// Returns whether the profile represents a flow event by links.
fn is_told_otherwise(event: &RawEvent<'_>, texts: &Texts) -> bool {
    match texts.text(event.category) {
        b"\"fwdbwd\"" | b"\"ac2g\"" => true,
        // Kineto's name for the flow from a launch to its kernel in 2021.
        b"\"async\"" => texts.text(event.name) == b"\"launch\"",
        _ => false,
    }
}
