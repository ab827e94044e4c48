//! The packets, decoded by an independent library and put back together as Perfetto's importer does.

use std::collections::HashMap;

use mindprof_model::Timeline;
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
    #[prost(message, optional, tag = "60")]
    track: Option<Track>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TrackEvent {
    #[prost(uint64, repeated, tag = "3")]
    categories: Vec<u64>,
    #[prost(int32, tag = "9")]
    kind: i32,
    #[prost(uint64, tag = "10")]
    name: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Interned {
    #[prost(message, repeated, tag = "2")]
    names: Vec<Text>,
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
}

/// Replays the packets: slices by name, start and end, in the order in which they end.
fn slices(profile: &Profile) -> Vec<(String, u64, u64)> {
    let mut bytes = Vec::new();
    write_perfetto(profile, &mut bytes).unwrap();
    let mut names: HashMap<(u32, u64), String> = HashMap::new();
    let mut clocks: HashMap<u32, u64> = HashMap::new();
    let mut open: HashMap<u32, Vec<(String, u64)>> = HashMap::new();
    let mut slices = Vec::new();
    for packet in Trace::decode(bytes.as_slice()).unwrap().packets {
        let sequence = packet.sequence;
        for text in packet.interned.into_iter().flat_map(|news| news.names) {
            assert!(names.insert((sequence, text.id), text.text).is_none());
        }
        let Some(event) = packet.event else { continue };
        let now = clocks.entry(sequence).or_default();
        *now += packet.timestamp.unwrap();
        let stack = open.entry(sequence).or_default();
        if event.kind == 1 {
            stack.push((names[&(sequence, event.name)].clone(), *now));
        } else {
            let (name, start) = stack.pop().unwrap();
            slices.push((name, start, *now));
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    slices
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
    let expected = [("inner", 5, 10), ("outer", 0, 30)]
        .map(|(name, start, end)| (name.to_owned(), start, end));
    assert_eq!(slices(&profile), expected);
}

proptest! {
    #[test]
    fn every_event_is_in_the_trace_with_its_times(
        intervals in prop::collection::vec((0_u64..3, 0_u64..50, 0_u64..20, "[a-c]"), 0..40),
    ) {
        let profile = Timeline::draw(|time| {
            for (thread, start, length, name) in &intervals {
                time.thread(*thread);
                time.idle(*start);
                time.op(name, *length);
            }
        });
        let mut found = slices(&profile);
        let mut expected: Vec<_> = intervals
            .into_iter()
            .map(|(_, start, length, name)| (name, start, start + length))
            .collect();
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }
}
