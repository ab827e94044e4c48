//! A simple reader on a JSON library, and tests that the fast reader agrees with it.

use std::io::{self, Read};

use proptest::prelude::*;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::*;
use crate::chrome::event::{RawArguments, RawEvent, Rest, Texts};
use crate::chrome::keys::{ARGUMENT_KEYS, ArgumentKey};
use crate::chrome::time::Stated;
use crate::read::read_trace_from;
use crate::reading::Reading;

/// Returns the entries of a JSON object in order, or nothing for other JSON.
fn entries(raw: &str) -> Vec<(String, &str)> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(String, &'de str)>;

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(
            self,
            mut map: A,
        ) -> std::result::Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                found.push((key, value.get()));
            }
            Ok(found)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    deserializer.deserialize_map(Entries).unwrap_or_default()
}

fn raw_event<'a>(raw: &'a str, texts: &mut Texts, rest: &mut Rest) -> RawEvent<'a> {
    let mut event = RawEvent {
        whole: raw.as_bytes(),
        ..RawEvent::default()
    };
    for (key, value) in entries(raw) {
        let bytes = value.as_bytes();
        match key.as_str() {
            "ph" => {
                let text = serde_json::from_str::<String>(value).unwrap_or_default();
                event.phase = if text.len() == 1 {
                    text.as_bytes()[0]
                } else {
                    0
                };
            }
            "cat" => event.category = texts.intern(bytes),
            "name" => event.name = texts.intern(bytes),
            "pid" => event.process = bytes,
            "tid" => event.thread = bytes,
            "ts" => event.start = Some(Stated::read(bytes)),
            "dur" => event.duration = Some(Stated::read(bytes)),
            "args" => {
                rest.arguments.clear();
                event.arguments = raw_arguments(value, texts, &mut rest.arguments);
            }
            _ => push_entry(&mut rest.fields, &key, value),
        }
    }
    event
}

fn raw_arguments<'a>(raw: &'a str, texts: &mut Texts, rest: &mut Vec<u8>) -> RawArguments<'a> {
    let mut found = RawArguments::default();
    for (key, value) in entries(raw) {
        match ArgumentKey::of(key.as_bytes()) {
            ArgumentKey::Other => push_entry(rest, &key, value),
            key if key.is_text() => found.set_text(key, texts.intern(value.as_bytes())),
            key => found.set_value(key, value.as_bytes()),
        }
    }
    found
}

fn push_entry(entries: &mut Vec<u8>, key: &str, value: &str) {
    entries.extend_from_slice(format!("{}:{value},", serde_json::json!(key)).as_bytes());
}

/// Reads a valid trace with the library.
fn read_clearly(trace: &str) -> Reading {
    let (mut events, mut texts) = (Events::new(), Texts::new());
    let mut list = trace;
    for (key, value) in entries(trace) {
        match key.as_str() {
            "traceEvents" => list = value,
            "baseTimeNanoseconds" => events.collector.base_ns = value.parse().unwrap_or(0),
            _ => events.collector.part.metadata.set(key, value),
        }
    }
    for raw in serde_json::from_str::<Vec<&RawValue>>(list).unwrap() {
        let mut rest = Rest::default();
        let event = raw_event(raw.get(), &mut texts, &mut rest);
        events.collector.add(&event, &texts, &rest);
    }
    events.collector.build().into_reading().unwrap()
}

/// A file that returns a few bytes at a time.
struct Trickle<'a> {
    bytes: &'a [u8],
    most: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.most.min(buffer.len());
        self.bytes.read(&mut buffer[..most])
    }
}

const KEYS: [&str; 12] = [
    "ph", "cat", "name", "pid", "tid", "ts", "dur", "ts", "dur", "name", "id", "s",
];
/// Arguments that no reader knows.
const STRANGE_ARGUMENTS: [&str; 3] = ["grid", "warps per SM", "x"];
const VALUES: [&str; 30] = [
    "0",
    "1",
    "2",
    "7.25",
    "-3",
    "1e3",
    "12345678901234567890",
    "3844538297286.281",
    "\"5.5\"",
    "\"\"",
    "\"a\"",
    "\"ab\"",
    "\"aten::mul\"",
    "\"[memory]\"",
    "\"thread_name\"",
    "\"\\u00e9\\n\\\"\\\\\"",
    "\"cpu_op\"",
    "\"kernel\"",
    "\"python_function\"",
    "\"a;b;c;\"",
    "\"b;c;\"",
    "true",
    "false",
    "null",
    "[]",
    "[[2, 3], []]",
    "[\"float\", \"Scalar\"]",
    "[[3, 1], []]",
    "[\"\", \"7\"]",
    "{\"x\": [1, {\"y\": \"]}\"}]}",
];
const PHASES: [&str; 10] = ["X", "X", "X", "X", "B", "E", "i", "M", "C", "s"];
const SPACES: [&str; 5] = ["", "", " ", "\n    ", "\t\r\n"];

fn any_of<const N: usize>(texts: [&'static str; N]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(texts.to_vec())
}

fn any_object(
    keys: impl Strategy<Value = String>,
    values: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    let entry = (keys, any_of(SPACES), values, any_of(SPACES));
    prop::collection::vec(entry, 0..12).prop_map(|entries| {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(key, before, value, after)| format!("{before}\"{key}\":{after}{value}"))
            .collect();
        format!("{{{} }}", entries.join(","))
    })
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => any_of(VALUES).prop_map(String::from),
        1 => any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        1 => any::<i32>().prop_map(|number| number.to_string()),
    ]
}

fn any_event() -> impl Strategy<Value = String> {
    let keys = || prop::sample::select([&ARGUMENT_KEYS[..], &STRANGE_ARGUMENTS].concat());
    let arguments = || any_object(keys().prop_map(String::from), any_value());
    let value = prop_oneof![6 => any_value(), 1 => arguments()];
    let event = any_object(any_of(KEYS).prop_map(String::from), value);
    let parts = (event, arguments(), any_of(PHASES), any::<bool>());
    parts.prop_map(|(event, arguments, phase, is_first)| {
        let known = format!("\"ph\":\"{phase}\",\"ts\": 5,\"dur\":2");
        let inside = &event[1..event.len() - 2];
        let comma = if inside.is_empty() { "" } else { "," };
        if is_first {
            format!("{{\"args\": {arguments}, {known}{comma}{inside} }}")
        } else {
            format!("{{{inside}{comma}{known},\"args\": {arguments}}}")
        }
    })
}

proptest! {
    #[test]
    fn any_trace_gives_the_clear_versions_profile(
        events in prop::collection::vec(any_event(), 1..12),
        repeated in 1..3_usize,
        is_object: bool,
        most in 1..200_usize,
    ) {
        let events = vec![events.join(",\n"); repeated].join(",");
        let trace = if is_object {
            format!("{{\"a\": {{\"b\": 1}},\n \"baseTimeNanoseconds\": 7, \"traceEvents\" : [{events}], \"c\": \"d\"}}")
        } else {
            format!(" [{events}]\n")
        };
        let expected = read_clearly(&trace);
        let file = Trickle { bytes: trace.as_bytes(), most };
        // Without a valid phase, nothing identifies it as a trace.
        match read_trace_from(file, &ReadOptions::default()) {
            Ok(found) => {
                prop_assert_eq!(format!("{:?}", found.profile), format!("{:?}", expected.profile));
                prop_assert_eq!(found.repairs, expected.repairs);
                prop_assert_eq!(found.set_aside, expected.set_aside);
                prop_assert_eq!(found.left_out, expected.left_out);
            }
            Err(Error::NotATrace { .. }) => {
                prop_assert_eq!(expected.profile.events().len(), 0);
            }
            Err(error) => prop_assert!(false, "{error}\n{trace}"),
        }
    }
}
