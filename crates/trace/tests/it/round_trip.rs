//! Written profiles are read back unchanged.

use std::collections::{HashMap, HashSet};

use mindprof_model::{
    Category, DType, DeviceKind, Event, EventId, Flags, ForwardThread, InputsEncoder, Links,
    LossCause, MemoryRecord, Nanos, Part, Profile, RoleRecord, ScopeKind, StackId, StringTable,
    TensorRole, Thread, ThreadId,
};
use mindprof_trace::{ReadOptions, read_trace, read_trace_file, read_trace_with, write_trace};
use proptest::prelude::*;
use serde_json::Value;

use crate::corpus::Session;
use crate::passthrough::passthrough_of;

fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_trace(profile, "trace.json", &mut bytes).unwrap();
    bytes
}

/// Describes everything that a trace file keeps of a profile, independently of the order of ids.
pub(crate) fn describe(profile: &Profile) -> Vec<String> {
    let mut lines = vec![format!(
        "{} {} {:?}",
        profile.reference_unix_ns(),
        profile.span(),
        profile.loss()
    )];
    lines.extend(profile.events().iter().map(|event| {
        let thread = profile.threads()[event.thread.index()];
        format!(
            "{:?} {} {} {:?} {:?} {:?} {:?} {} {} {:?} {:?} {:?}",
            profile.name(event),
            event.start,
            event.duration,
            event.category,
            event.scope,
            event.flags,
            event.sequence(),
            thread.process,
            thread.native,
            thread.device,
            profile.strings().text(thread.name),
            profile.inputs().words(event.inputs),
        ) + &stack_text(profile, event.stack)
    }));
    lines.extend(profile.memory().iter().map(|record| {
        let thread = profile.threads()[record.thread.index()];
        let shown = MemoryRecord {
            thread: ThreadId::from_raw(0),
            stack: StackId::NONE,
            ..record
        };
        format!("{shown:?} {}", thread.native) + &stack_text(profile, record.stack)
    }));
    let storages = (0..profile.events().len()).map(|index| profile.storages().of(index));
    lines.extend(storages.map(|addresses| format!("{addresses:?}")));
    lines.extend(profile.roles().iter().map(|record| {
        let thread = profile.threads()[record.thread.index()];
        let shown = RoleRecord {
            thread: ThreadId::from_raw(0),
            ..*record
        };
        format!("{shown:?} {}", thread.native)
    }));
    lines.extend(passthrough_of(profile));
    lines
}

fn stack_text(profile: &Profile, stack: StackId) -> String {
    let frames = profile.stacks().frames(stack);
    frames
        .flat_map(|frame| [" < ", profile.strings().text(frame)])
        .collect()
}

/// Returns the correlation ids of all events, and the threads of the forward operators of autograd
/// nodes.
fn links_of(profile: &Profile) -> Vec<(u32, u32, String)> {
    let ids = (0..profile.events().len()).map(EventId::from_index);
    ids.filter_map(|id| profile.links(id))
        .map(|links| {
            (
                links.external,
                links.correlation,
                forward_of(profile, links),
            )
        })
        .collect()
}

/// Describes the thread of a forward operator, independently of the order of ids.
fn forward_of(profile: &Profile, links: Links) -> String {
    match links.forward_thread() {
        ForwardThread::At(thread) => {
            let thread = profile.threads()[thread.index()];
            format!("{} {}", thread.process, thread.native)
        }
        other @ (ForwardThread::Unknown | ForwardThread::Elsewhere) => format!("{other:?}"),
    }
}

#[test]
fn recorded_traces_survive_being_written() {
    for session in Session::ALL {
        let profile = read_trace_file(&session.trace_path()).unwrap();
        let again = read_trace(&written(&profile)).unwrap();
        assert_eq!(describe(&again), describe(&profile), "{session:?}");
        assert_eq!(again.metadata(), profile.metadata(), "{session:?}");
        assert_eq!(links_of(&again), links_of(&profile), "{session:?}");
    }
}

const KEPT_FIELDS: [&str; 9] = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "bp"];

/// The arguments of events that a profile keeps.
const KEPT_ARGUMENTS: [&str; 20] = [
    "Sequence number",
    "Fwd thread id",
    "Input Dims",
    "Input type",
    "Input Strides",
    "Concrete Inputs",
    "Call stack",
    "Python id",
    "Python parent id",
    "Python module id",
    "External id",
    "correlation",
    "Bytes",
    "Addr",
    "Total Allocated",
    "Total Reserved",
    "Device Type",
    "Device Id",
    "Record function id",
    "finished",
];

/// Lists the kept data of complete events, memory records and flows of a trace, in an order that
/// both writers share.
fn kept_of(trace: &[u8]) -> Vec<String> {
    let trace: Value = serde_json::from_slice(trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let arrows = whole_arrows(events);
    let mut lines: Vec<String> = events
        .iter()
        .filter(|event| match event["ph"].as_str() {
            Some("X") => true,
            Some("s" | "f") => arrows.contains(&arrow_of(event)),
            _ => event["name"] == "[memory]",
        })
        .map(|event| {
            let mut fields = KEPT_FIELDS.map(|key| event[key].clone());
            fields[4] = own_track(&trace, event);
            let mut arguments = KEPT_ARGUMENTS.map(|key| event["args"][key].clone());
            if event["cat"] == "python_function" {
                // Older traces give callers only by number, and zero means that there is none.
                arguments[6] = Value::Null;
                arguments[8] = Some(arguments[8].clone())
                    .filter(|caller| *caller != 0)
                    .unwrap_or_default();
            }
            format!("{fields:?} {arguments:?}")
        })
        .collect();
    lines.sort();
    lines
}

fn arrow_of(event: &Value) -> (String, u64) {
    (event["cat"].to_string(), event["id"].as_u64().unwrap())
}

/// torch also writes flow starts without an end and flow ends without a start.
fn whole_arrows(events: &[Value]) -> HashSet<(String, u64)> {
    let ends = |phase: &'static str| -> HashSet<_> {
        let ends = events.iter().filter(|event| event["ph"] == phase);
        ends.map(arrow_of).collect()
    };
    ends("s").intersection(&ends("f")).cloned().collect()
}

/// Returns the thread of an event, which our writer may put on an overflow track.
fn own_track(trace: &Value, event: &Value) -> Value {
    let overflow = trace["mindprof"]["spare_tracks"].as_array();
    let mut overflow = overflow.into_iter().flatten();
    let found = overflow.find(|track| track["pid"] == event["pid"] && track["tid"] == event["tid"]);
    found.map_or(&event["tid"], |track| &track["of"]).clone()
}

#[test]
fn written_events_say_what_torch_wrote() {
    for session in Session::ALL {
        let profile = read_trace_file(&session.trace_path()).unwrap();
        let found = kept_of(&written(&profile));
        let expected = kept_of(&session.trace());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{session:?}");
        }
        assert_eq!(found.len(), expected.len(), "{session:?}");
    }
}

/// The number of categories that are scopes.
const SCOPES: usize = 3;

const CATEGORIES: [Category; 7] = [
    Category::Operator,
    Category::Annotation,
    Category::PythonFunction,
    Category::Runtime,
    Category::Kernel,
    Category::DeviceAnnotation,
    Category::Other,
];

const DEVICE_CATEGORIES: [Category; 2] = [Category::Kernel, Category::DeviceAnnotation];

/// The number of CPU threads, and of streams.
const LANES: usize = 3;

#[derive(Clone, Debug)]
struct AnyEvent {
    name: String,
    category: usize,
    start: u64,
    duration: u64,
    sequence: Option<u32>,
    backward: bool,
    /// The index of its thread or stream, and that of the forward operator of an autograd node.
    lanes: (usize, usize),
    dims: u8,
    frames: Vec<String>,
    links: (u32, u32),
    storages: Vec<u64>,
}

/// Returns a text that a stack can contain: `;` separates frames.
fn any_frame() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| text.replace(';', ":") + ")")
}

fn any_event() -> impl Strategy<Value = AnyEvent> {
    let times = (0..1_u64 << 50, 0..1_u64 << 50);
    let lanes = (0..LANES, 0..LANES);
    let numbers = (prop::option::of(0..9_u32), any::<bool>(), lanes, 0..4_u8);
    let frames = prop::collection::vec(any_frame(), 0..3);
    let parts = (
        any::<String>(),
        0..CATEGORIES.len(),
        times,
        numbers,
        frames,
        (
            any::<(u32, u32)>(),
            prop::collection::vec(any::<u64>(), 0..3),
        ),
    );
    parts.prop_map(
        |(
            name,
            category,
            (start, duration),
            (sequence, backward, lanes, dims),
            frames,
            (links, storages),
        )| AnyEvent {
            name,
            category,
            start,
            duration,
            sequence,
            backward,
            lanes,
            dims,
            frames,
            links,
            storages,
        },
    )
}

fn any_role() -> impl Strategy<Value = RoleRecord> {
    let roles = prop::sample::select(TensorRole::ALL.to_vec());
    let threads = 0..2 * LANES as u32;
    (0..1_u64 << 50, any::<(u64, u64)>(), threads, roles).prop_map(
        |(time, (address, bytes), thread, role)| RoleRecord {
            time: Nanos(time),
            address,
            bytes,
            thread: ThreadId::from_raw(thread),
            role,
        },
    )
}

fn any_memory() -> impl Strategy<Value = (MemoryRecord, Vec<String>)> {
    // Implausible amounts do not round-trip: see `Repair::AbsurdMemory`.
    let totals = 0..=1_u64 << 50;
    let amounts = (
        any::<u64>(),
        -(1_i64 << 42)..=1_i64 << 42,
        totals.clone(),
        totals,
    );
    let numbers = (
        0..1_u64 << 50,
        amounts,
        0..DeviceKind::ALL.len(),
        any::<i16>(),
    );
    let frames = prop::collection::vec(any_frame(), 0..3);
    (numbers, frames).prop_map(
        |((time, (address, bytes, all, held), device, index), frames)| {
            let record = MemoryRecord {
                time: Nanos(time),
                address,
                bytes,
                total_allocated: all,
                total_reserved: held,
                thread: ThreadId::from_raw(0),
                stack: StackId::NONE,
                device: DeviceKind::ALL[device],
                device_index: index,
            };
            (record, frames)
        },
    )
}

fn intern_stack(builder: &mut Part, frames: &[String]) -> StackId {
    frames.iter().fold(StackId::NONE, |stack, frame| {
        let frame = builder.strings.intern(frame);
        builder.stacks.push(stack, frame)
    })
}

/// Builds a profile with everything that a trace file keeps.
fn build(
    events: &[AnyEvent],
    memory: &[(MemoryRecord, Vec<String>)],
    roles: &[RoleRecord],
) -> Part {
    let mut builder = Part::new();
    let on_device = |any: &AnyEvent| (DEVICE_CATEGORIES).contains(&CATEGORIES[any.category]);
    let mut lanes: Vec<(bool, usize)> = Vec::new();
    lanes.extend(events.iter().map(|any| (on_device(any), any.lanes.0)));
    lanes.extend(memory.iter().map(|_| (false, 0)));
    lanes.sort_unstable();
    lanes.dedup();
    let threads: HashMap<(bool, usize), ThreadId> = (lanes.into_iter())
        .map(|(on_device, lane)| {
            let native = 7 + lane as u64;
            let name = if on_device {
                builder.strings.intern(&format!("stream {native} "))
            } else {
                StringTable::EMPTY
            };
            let thread = builder.add_thread(Thread {
                process: u64::from(!on_device),
                native,
                name,
                device: [DeviceKind::Cpu, DeviceKind::Cuda][usize::from(on_device)],
            });
            ((on_device, lane), thread)
        })
        .collect();
    // A thread is identified by its index among the threads with events.
    let works = |lane: usize| {
        let is_scope = |any: &AnyEvent| any.category < SCOPES;
        events
            .iter()
            .any(|any| is_scope(any) && any.lanes.0 == lane)
    };
    let mut used = HashSet::new();
    for any in events {
        let category = CATEGORIES[any.category];
        let name = builder.strings.intern(&any.name);
        let thread = threads[&(on_device(any), any.lanes.0)];
        used.insert(thread);
        let (start, duration) = (Nanos(any.start), Nanos(any.duration));
        let mut event = Event::new(category, name, thread, start, duration);
        let mut links = Links::default();
        if matches!(category, Category::Operator | Category::PythonFunction) {
            event.stack = intern_stack(&mut builder, &any.frames);
        }
        if category == Category::Operator {
            event.set_sequence(any.sequence);
            if any.backward && any.sequence.is_some() {
                event.scope = ScopeKind::Backward;
                event.flags = Flags::UNFINISHED.union(Flags::ASYNC);
                let forward = any.lanes.1;
                links.set_forward_thread(if works(forward) {
                    ForwardThread::At(threads[&(false, forward)])
                } else {
                    ForwardThread::Elsewhere
                });
            }
            let mut encoder = InputsEncoder::default();
            for dim in 0..usize::from(any.dims) {
                encoder.tensor(DType::BF16, &[dim, 3], &[3, 1]);
                encoder.float(0.1);
            }
            event.inputs = builder.inputs.intern(encoder.words());
        }
        if on_device(any) || category == Category::Runtime {
            (links.external, links.correlation) = any.links;
        }
        builder.set_storages(builder.len(), &any.storages);
        builder.add_linked_event(event, links);
    }
    // Events carry the roles of tensors, so roles round-trip only on threads that have events.
    for role in roles.iter().filter(|role| used.contains(&role.thread)) {
        builder.add_role(*role);
    }
    for (record, frames) in memory {
        let stack = intern_stack(&mut builder, frames);
        let thread = threads[&(false, 0)];
        builder.add_memory(MemoryRecord {
            stack,
            thread,
            ..*record
        });
    }
    builder
}

/// Returns the correlation ids of device work and runtime calls; the writer assigns those of
/// scopes.
fn device_links(profile: &Profile) -> Vec<(u32, u32)> {
    let ids = (0..profile.events().len()).map(EventId::from_index);
    ids.filter(|&id| {
        matches!(
            profile.event(id).category,
            Category::Runtime | Category::Kernel | Category::DeviceAnnotation
        )
    })
    .filter_map(|id| profile.links(id))
    .map(|links| (links.external, links.correlation))
    .collect()
}

fn forwards_of(profile: &Profile) -> Vec<String> {
    let ids = (0..profile.events().len()).map(EventId::from_index);
    ids.map(|id| forward_of(profile, profile.links(id).unwrap_or_default()))
        .collect()
}

proptest! {
    #[test]
    fn any_profile_survives_being_written(
        events in prop::collection::vec(any_event(), 0..20),
        memory in prop::collection::vec(any_memory(), 0..5),
        roles in prop::collection::vec(any_role(), 0..9),
        facts in prop::collection::vec((any::<String>(), any::<String>()), 0..4),
        reference_unix_ns in 1..1_u64 << 61,
        lost: [u32; 3],
    ) {
        let mut builder = build(&events, &memory, &roles);
        builder.reference_unix_ns = reference_unix_ns;
        for (cause, count) in LossCause::ALL.into_iter().zip(lost) {
            builder.add_loss(cause, u64::from(count));
        }
        for (key, value) in facts {
            let value = serde_json::to_string(&value).unwrap();
            builder.metadata.set(format!("fact {key}"), value);
        }
        let profile = builder.into_profile().unwrap();
        let again = read_trace_with(&written(&profile), &ReadOptions::default()).unwrap();
        prop_assert_eq!(again.repairs.iter().collect::<Vec<_>>(), []);
        prop_assert!(again.left_out.is_empty());
        let again = again.profile;
        prop_assert_eq!(describe(&again), describe(&profile));
        prop_assert_eq!(device_links(&again), device_links(&profile));
        prop_assert_eq!(forwards_of(&again), forwards_of(&profile));
        for (key, value) in profile.metadata().iter() {
            prop_assert_eq!(again.metadata().get(key), Some(value));
        }
    }
}
