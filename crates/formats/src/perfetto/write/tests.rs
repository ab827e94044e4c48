//! The packets, decoded by an independent library and put back together as Perfetto's importer
//! does.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::ZlibDecoder;
use mindprof_model::{
    Category, Event, Links, MemoryRecord, ProfileBuilder, ScopeKind, StackId, StringTable, Thread,
    ThreadId, Timeline,
};
use proptest::prelude::*;
use prost::Message as _;

use super::*;

#[derive(Clone, PartialEq, prost::Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packets: Vec<Packet>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    sequence: u32,
    #[prost(message, optional, tag = "11")]
    event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned: Option<Interned>,
    #[prost(bytes = "vec", optional, tag = "50")]
    compressed: Option<Vec<u8>>,
    #[prost(message, optional, tag = "59")]
    defaults: Option<Defaults>,
    #[prost(message, optional, tag = "60")]
    track: Option<Track>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Defaults {
    #[prost(message, optional, tag = "11")]
    event: Option<TrackEvent>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TrackEvent {
    #[prost(uint64, repeated, tag = "3")]
    categories: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    annotations: Vec<Annotation>,
    #[prost(int32, tag = "9")]
    kind: i32,
    #[prost(uint64, tag = "10")]
    name: u64,
    #[prost(uint64, tag = "11")]
    track: u64,
    #[prost(int64, tag = "30")]
    counter: i64,
    #[prost(fixed64, repeated, tag = "47")]
    flows: Vec<u64>,
    #[prost(fixed64, repeated, tag = "48")]
    last_flows: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Annotation {
    #[prost(uint64, tag = "1")]
    name: u64,
    #[prost(uint64, tag = "3")]
    number: u64,
    #[prost(string, tag = "6")]
    text: String,
    #[prost(string, tag = "10")]
    name_text: String,
    #[prost(uint64, tag = "17")]
    interned: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Interned {
    #[prost(message, repeated, tag = "1")]
    categories: Vec<Text>,
    #[prost(message, repeated, tag = "2")]
    names: Vec<Text>,
    #[prost(message, repeated, tag = "3")]
    annotation_names: Vec<Text>,
    #[prost(message, repeated, tag = "29")]
    annotation_texts: Vec<Text>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    text: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Track {
    #[prost(uint64, tag = "1")]
    uuid: u64,
    #[prost(string, tag = "2")]
    name: String,
}

/// A slice as a viewer shows it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Slice {
    name: String,
    category: String,
    start: u64,
    end: u64,
    arguments: Vec<(String, String)>,
    flows: Vec<u64>,
}

/// What a viewer knows when all packets went by.
#[derive(Debug, Default)]
struct Shown {
    slices: Vec<Slice>,
    /// The values of counters, by the name of their track.
    counters: Vec<(String, u64, i64)>,
    facts: Vec<(String, String)>,
}

fn decompressed(packets: Vec<Packet>) -> Vec<Packet> {
    let inside = packets.into_iter().flat_map(|packet| {
        let compressed = packet.compressed.expect("packets are compressed");
        let mut bytes = Vec::new();
        ZlibDecoder::new(compressed.as_slice())
            .read_to_end(&mut bytes)
            .unwrap();
        Trace::decode(bytes.as_slice()).unwrap().packets
    });
    inside.collect()
}

/// Replays the packets: slices come in the order in which they end.
fn shown(profile: &Profile) -> Shown {
    let mut bytes = Vec::new();
    write_perfetto(profile, &mut bytes).unwrap();
    let mut texts: HashMap<(u32, &str, u64), String> = HashMap::new();
    let mut clocks: HashMap<u32, u64> = HashMap::new();
    let mut tracks: HashMap<u64, String> = HashMap::new();
    let mut default_tracks: HashMap<u32, u64> = HashMap::new();
    let mut open: HashMap<u64, Vec<Slice>> = HashMap::new();
    let mut shown = Shown::default();
    for packet in decompressed(Trace::decode(bytes.as_slice()).unwrap().packets) {
        let sequence = packet.sequence;
        let interned = packet.interned.unwrap_or_default();
        for (kind, news) in [
            ("category", interned.categories),
            ("name", interned.names),
            ("argument", interned.annotation_names),
            ("text", interned.annotation_texts),
        ] {
            for text in news {
                let before = texts.insert((sequence, kind, text.id), text.text);
                assert!(before.is_none(), "told twice: {kind} {before:?}");
            }
        }
        if let Some(track) = packet.track {
            assert!(tracks.insert(track.uuid, track.name).is_none());
        }
        if let Some(event) = packet.defaults.and_then(|defaults| defaults.event) {
            default_tracks.insert(sequence, event.track);
        }
        let Some(event) = packet.event else { continue };
        let now = clocks.entry(sequence).or_default();
        *now += packet.timestamp.unwrap();
        let text = |kind: &'static str, id: u64| texts[&(sequence, kind, id)].clone();
        match event.kind {
            1 => {
                let track = default_tracks[&sequence];
                assert!(tracks.contains_key(&track));
                let slice = Slice {
                    name: text("name", event.name),
                    category: text("category", event.categories[0]),
                    start: *now,
                    end: 0,
                    arguments: event
                        .annotations
                        .iter()
                        .map(|said| {
                            let value = match said.interned {
                                0 => said.number.to_string(),
                                id => text("text", id),
                            };
                            (text("argument", said.name), value)
                        })
                        .collect(),
                    flows: [event.flows, event.last_flows].concat(),
                };
                open.entry(track).or_default().push(slice);
            }
            2 => {
                let stack = open.get_mut(&default_tracks[&sequence]).unwrap();
                let mut slice = stack.pop().unwrap();
                slice.end = *now;
                shown.slices.push(slice);
            }
            3 => {
                let facts = event.annotations.into_iter();
                shown
                    .facts
                    .extend(facts.map(|said| (said.name_text, said.text)));
            }
            4 => {
                let name = tracks[&event.track].clone();
                shown.counters.push((name, *now, event.counter));
            }
            other => panic!("no such type: {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    shown
}

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

fn builder() -> (ProfileBuilder, ThreadId) {
    let mut builder = ProfileBuilder::new();
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
    let shown = shown(&builder.build().unwrap());
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
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(shown.slices[0].arguments, said);
    assert_eq!(shown.slices[1].arguments, said);
    for fact in [("lost.budget", "3"), ("who", "\"me\"")] {
        let fact = (fact.0.to_owned(), fact.1.to_owned());
        assert!(shown.facts.contains(&fact), "{:?}", shown.facts);
    }
}

#[test]
fn memory_is_a_counter_for_each_device() {
    let (mut builder, thread) = builder();
    for (device, time, total) in [(DeviceKind::Cpu, 1, 64), (DeviceKind::Cuda, 3, 512)] {
        builder.add_memory(MemoryRecord {
            time: Nanos(time),
            address: 1,
            bytes: 8,
            total_allocated: total,
            total_reserved: 2 * total,
            thread,
            stack: StackId::NONE,
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
    assert_eq!(shown(&builder.build().unwrap()).counters, expected);
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
        let shown = shown(&builder.build().unwrap());
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
