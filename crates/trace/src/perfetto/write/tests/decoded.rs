//! Decodes packets and replays them as a viewer does.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::ZlibDecoder;
use mindprof_model::Profile;
use prost::Message as _;

use crate::perfetto::write_perfetto;

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
    #[prost(string, repeated, tag = "22")]
    category_texts: Vec<String>,
    #[prost(string, tag = "23")]
    name_text: String,
    #[prost(int64, tag = "30")]
    counter: i64,
    #[prost(double, optional, tag = "44")]
    float_counter: Option<f64>,
    #[prost(fixed64, repeated, tag = "47")]
    flows: Vec<u64>,
    #[prost(fixed64, repeated, tag = "48")]
    last_flows: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Annotation {
    #[prost(uint64, tag = "1")]
    name: u64,
    #[prost(bool, optional, tag = "2")]
    truth: Option<bool>,
    #[prost(uint64, optional, tag = "3")]
    number: Option<u64>,
    #[prost(int64, optional, tag = "4")]
    signed: Option<i64>,
    #[prost(double, optional, tag = "5")]
    float: Option<f64>,
    #[prost(string, optional, tag = "6")]
    text: Option<String>,
    #[prost(string, tag = "10")]
    name_text: String,
    #[prost(message, repeated, tag = "11")]
    entries: Vec<Annotation>,
    #[prost(message, repeated, tag = "12")]
    items: Vec<Annotation>,
    #[prost(uint64, optional, tag = "17")]
    interned: Option<u64>,
}

impl Annotation {
    /// Returns the value as text, with interned texts and names resolved.
    fn value(&self, look_up: &impl Fn(&'static str, u64) -> String) -> String {
        let numbers = [
            self.truth.map(|value| value.to_string()),
            self.number.map(|value| value.to_string()),
            self.signed.map(|value| value.to_string()),
            self.float.map(|value| format!("{value:?}")),
            self.text.clone(),
            self.interned.map(|id| look_up("text", id)),
        ];
        let mut said: Vec<String> = numbers.into_iter().flatten().collect();
        if !self.items.is_empty() {
            let items: Vec<_> = self.items.iter().map(|item| item.value(look_up)).collect();
            said.push(format!("[{}]", items.join(" ")));
        }
        if !self.entries.is_empty() {
            let entry = |entry: &Annotation| {
                format!(
                    "{}={}",
                    look_up("argument", entry.name),
                    entry.value(look_up)
                )
            };
            let entries: Vec<_> = self.entries.iter().map(entry).collect();
            said.push(format!("{{{}}}", entries.join(" ")));
        }
        assert_eq!(said.len(), 1, "one value: {self:?}");
        said.remove(0)
    }
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
pub(super) struct Slice {
    pub(super) name: String,
    pub(super) category: String,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) arguments: Vec<(String, String)>,
    pub(super) flows: Vec<u64>,
    /// The name of its track.
    pub(super) track: String,
}

/// The state of a viewer after all packets.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) slices: Vec<Slice>,
    /// Instants, as slices without a duration.
    pub(super) moments: Vec<Slice>,
    /// The values of counters, by the name of their track.
    pub(super) counters: Vec<(String, u64, i64)>,
    pub(super) float_counters: Vec<(String, u64, f64)>,
    pub(super) facts: Vec<(String, String)>,
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

/// Replays the packets. Slices are in the order of their ends.
pub(super) fn shown(profile: &Profile) -> Shown {
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
        let track = match event.track {
            0 => default_tracks.get(&sequence).copied().unwrap_or(0),
            track => track,
        };
        let slice = || Slice {
            name: match event.name {
                0 => event.name_text.clone(),
                id => text("name", id),
            },
            category: match event.categories.first() {
                Some(&id) => text("category", id),
                None => event.category_texts.concat(),
            },
            start: *now,
            end: *now,
            arguments: event
                .annotations
                .iter()
                .map(|said| (text("argument", said.name), said.value(&text)))
                .collect(),
            flows: [&event.flows[..], &event.last_flows].concat(),
            track: tracks[&track].clone(),
        };
        match event.kind {
            1 => open.entry(track).or_default().push(slice()),
            2 => {
                let mut slice = open.get_mut(&track).unwrap().pop().unwrap();
                slice.end = *now;
                shown.slices.push(slice);
            }
            3 if event.name_text == "profile" => {
                let facts = event.annotations.into_iter();
                shown
                    .facts
                    .extend(facts.map(|said| (said.name_text, said.text.unwrap())));
            }
            3 => shown.moments.push(slice()),
            4 => {
                let name = tracks[&track].clone();
                match event.float_counter {
                    Some(value) => shown.float_counters.push((name, *now, value)),
                    None => shown.counters.push((name, *now, event.counter)),
                }
            }
            other => panic!("no such type: {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    shown
}
