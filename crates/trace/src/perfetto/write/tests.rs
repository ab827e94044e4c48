//! Tests of the packets, decoded by an independent library and reassembled as Perfetto's importer
//! does.

use mindprof_model::{
    Category, Event, Links, MemoryRecord, Part, ScopeKind, StackId, StringTable, Thread, ThreadId,
    Timeline,
};
use proptest::prelude::*;

use self::decoded::{Slice, shown};
use super::*;
use crate::read::read_trace;

mod decoded;

#[test]
fn nested_scopes_begin_and_end_as_they_ran() {
    // outer |-----------|  0..30
    // inner    |--|        5..10
    let profile = Timeline::draw(|time| {
        time.scope("outer", |time| {
            time.idle(5);
            time.op("inner", 5);
            time.idle(20);
        });
    });
    let found: Vec<_> = shown(&profile)
        .slices
        .into_iter()
        .map(|slice| (slice.name, slice.category, slice.start, slice.end))
        .collect();
    let expected = [("inner", 5, 10), ("outer", 0, 30)]
        .map(|(name, start, end)| (name.to_owned(), "cpu_op".to_owned(), start, end));
    assert_eq!(found, expected);
}

fn builder() -> (Part, ThreadId) {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 7,
        native: 8,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    (builder, thread)
}

#[test]
fn arguments_arrows_and_facts_are_told() {
    let (mut builder, thread) = builder();
    builder.add_loss(LossCause::Budget, 3);
    builder.metadata.set("who", "\"me\"");
    let (frame, outer) = (
        builder.strings.intern("a.py(1): f"),
        builder.strings.intern("b.py(2): g"),
    );
    let stack = builder.stacks.push(StackId::NONE, outer);
    let stack = builder.stacks.push(stack, frame);
    let mut encoder = mindprof_model::InputsEncoder::default();
    encoder.tensor(mindprof_model::DType::F32, &[2, 3], &[3, 1]);
    let inputs = builder.inputs.intern(encoder.words());
    for (name, scope, start) in [
        ("op", ScopeKind::Function, 0),
        ("Back", ScopeKind::Backward, 9),
    ] {
        let name = builder.strings.intern(name);
        let mut event = Event::new(Category::Operator, name, thread, Nanos(start), Nanos(5));
        event.scope = scope;
        event.set_sequence(Some(4));
        (event.inputs, event.stack) = (inputs, stack);
        builder.add_event(event);
    }
    for (category, start) in [(Category::Runtime, 20), (Category::Kernel, 25)] {
        let name = builder.strings.intern("work");
        let event = Event::new(category, name, thread, Nanos(start), Nanos(2));
        builder.add_linked_event(event, Links::new(0, 6));
    }
    let shown = shown(&builder.into_profile().unwrap());
    let flows: Vec<_> = shown.slices.iter().map(|slice| &slice.flows[..]).collect();
    let launch = 1 << 32 | 6;
    assert_eq!(flows, [&[1][..], &[1], &[launch], &[launch]]);
    let said = [
        ("Concrete Inputs", "[\"\"]"),
        ("Input type", "[\"float\"]"),
        ("Input Strides", "[[3, 1]]"),
        ("Input Dims", "[[2, 3]]"),
        ("Call stack", "a.py(1): f\nb.py(2): g"),
        ("Sequence number", "4"),
    ];
    for (slice, number) in [(0, "1"), (1, "2")] {
        let said = [&said[..], &[("External id", number)]].concat();
        assert_eq!(arguments_of(&shown.slices[slice]), said);
    }
    assert_eq!(arguments_of(&shown.slices[2]), [("correlation", "6")]);
    for fact in [("lost.budget", "3"), ("who", "\"me\"")] {
        let fact = (fact.0.to_owned(), fact.1.to_owned());
        assert!(shown.facts.contains(&fact), "{:?}", shown.facts);
    }
}

#[test]
fn memory_is_a_counter_for_each_device_and_a_mark_on_its_thread() {
    let (mut builder, thread) = builder();
    let frame = builder.strings.intern("a.py(1): f");
    let stack = builder.stacks.push(StackId::NONE, frame);
    for (device, time, total) in [(DeviceKind::Cpu, 1, 64), (DeviceKind::Cuda, 3, 512)] {
        builder.add_memory(MemoryRecord {
            time: Nanos(time),
            address: 1,
            bytes: -8,
            total_allocated: total,
            total_reserved: 2 * total,
            thread,
            stack,
            device,
            device_index: 0,
        });
    }
    let expected = [
        ("allocated memory, CPU", 1, 64),
        ("allocated memory, CUDA 0", 3, 512),
        ("reserved memory, CUDA 0", 3, 1024),
    ]
    .map(|(name, time, bytes)| (name.to_owned(), time, bytes));
    let shown = shown(&builder.into_profile().unwrap());
    assert_eq!(shown.counters, expected);
    let own = shown.moments.iter().map(|mark| (&*mark.name, mark.start));
    assert_eq!(own.collect::<Vec<_>>(), [("[memory]", 1), ("[memory]", 3)]);
    let device = DeviceKind::Cuda.number().to_string();
    let expected = [
        ("Bytes", "-8"),
        ("Addr", "1"),
        ("Device Type", &*device),
        ("Device Id", "0"),
        ("Call stack", "a.py(1): f"),
    ];
    assert_eq!(arguments_of(&shown.moments[1]), expected);
    assert_eq!(shown.moments[1].category, "cpu_instant_event");
    assert_eq!(shown.moments[1].track, shown.moments[0].track);
}

fn arguments_of(slice: &Slice) -> Vec<(&str, &str)> {
    let arguments = slice.arguments.iter();
    arguments.map(|(key, value)| (&**key, &**value)).collect()
}

#[test]
fn further_arguments_fields_and_categories_are_told() {
    let trace = r#"[{"ph": "X", "cat": "cuda_sync", "name": "a", "pid": 1, "tid": 2, "ts": 1, "dur": 1,
        "tts": 5, "args": {"n": 7, "m": -7, "f": 0.5, "t": "text", "b": true, "z": null, "l": [1, "x"], "o": {"k": [2.5]}}},
        {"ph": "X", "cat": "cuda_sync", "name": "b", "pid": 1, "tid": 2, "ts": 3, "dur": 1, "args": {"t": "text"}}]"#;
    let shown = shown(&read_trace(trace.as_bytes()).unwrap());
    assert_eq!(
        arguments_of(&shown.slices[0]),
        [
            ("n", "7"),
            ("m", "-7"),
            ("f", "0.5"),
            ("t", "text"),
            ("b", "true"),
            ("z", "null"),
            ("l", "[1 x]"),
            ("o", "{k=[2.5]}"),
            ("tts", "5"),
        ]
    );
    assert_eq!(arguments_of(&shown.slices[1]), [("t", "text")]);
    assert!(
        shown
            .slices
            .iter()
            .all(|slice| slice.category == "cuda_sync")
    );
}

#[test]
fn moments_counters_and_asynchronous_events_are_told() {
    let trace = r#"[{"ph": "X", "name": "x", "pid": 1, "tid": 2, "ts": 0, "dur": 9},
        {"ph": "i", "cat": "c", "name": "tick", "pid": 1, "tid": 2, "ts": 1, "s": "t", "args": {"a": 1}},
        {"ph": "C", "name": "queue", "pid": 1, "ts": 2, "args": {"length": 3, "load": 0.5, "why": "x"}},
        {"ph": "b", "cat": "net", "name": "get", "id": "0x1f", "pid": 1, "tid": 2, "ts": 3, "args": {"url": "u"}},
        {"ph": "n", "cat": "net", "name": "half", "id": "0x1f", "pid": 1, "tid": 2, "ts": 4},
        {"ph": "e", "cat": "net", "name": "get", "id": "0x1f", "pid": 1, "tid": 2, "ts": 5},
        {"ph": "s", "cat": "mine", "name": "to", "id": 8, "pid": 1, "tid": 2, "ts": 6},
        {"ph": "f", "cat": "mine", "name": "to", "id": 8, "pid": 1, "tid": 2, "ts": 7},
        {"ph": "R", "name": "mark", "pid": 1, "tid": 2, "ts": 8}]"#;
    let shown = shown(&read_trace(trace.as_bytes()).unwrap());
    let counters = [("queue length", 2_000, 3.0), ("queue load", 2_000, 0.5)];
    let counters = counters.map(|(name, time, value)| (name.to_owned(), time, value));
    assert_eq!(shown.float_counters, counters);
    let get = shown.slices.iter().find(|slice| slice.name == "get");
    let get = get.unwrap();
    assert_eq!((get.start, get.end, &*get.category), (3_000, 5_000, "net"));
    assert_eq!(
        (&*get.track, arguments_of(get)),
        ("net 0x1f", vec![("url", "u")])
    );
    let moments: Vec<_> = shown
        .moments
        .iter()
        .map(|moment| (&*moment.name, moment.start, moment.flows.len()))
        .collect();
    let expected = [
        ("tick", 1_000, 0),
        ("half", 4_000, 0),
        ("to", 6_000, 1),
        ("to", 7_000, 1),
        ("mark", 8_000, 0),
    ];
    assert_eq!(moments, expected);
    assert_eq!(shown.moments[2].flows, shown.moments[3].flows);
    assert_eq!(arguments_of(&shown.moments[0]), [("a", "1"), ("s", "t")]);
}

proptest! {
    #[test]
    fn every_event_is_in_the_trace_with_its_times(
        intervals in prop::collection::vec((0_usize..3, 0_u64..50, 0_u64..20, "[a-c]"), 0..40),
    ) {
        let (mut builder, _) = builder();
        for native in [1, 2] {
            builder.add_thread(Thread { native, ..builder.threads()[0] });
        }
        for (thread, start, length, name) in &intervals {
            let name = builder.strings.intern(name);
            let thread = ThreadId::from_index(*thread);
            let (start, length) = (Nanos(*start), Nanos(*length));
            builder.add_event(Event::new(Category::Operator, name, thread, start, length));
        }
        let shown = shown(&builder.into_profile().unwrap());
        let slices = shown.slices.into_iter();
        let mut found: Vec<_> = slices.map(|slice| (slice.name, slice.start, slice.end)).collect();
        let mut expected: Vec<_> = intervals
            .into_iter()
            .map(|(_, start, length, name)| (name, start, start + length))
            .collect();
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }
}
