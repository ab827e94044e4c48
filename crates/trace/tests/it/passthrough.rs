//! Unknown fields, arguments and events of a trace round-trip.

use std::collections::{BTreeMap, BTreeSet};

use mindprof_model::{
    Category, DeviceKind, Event, Nanos, Part, PassthroughKind, Profile, StringTable, Thread,
    UnknownEvent,
};
use mindprof_trace::{
    ReadOptions, Reading, read_trace, read_trace_file, read_trace_with, write_trace,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::corpus::Session;

fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_trace(profile, "trace.json", &mut bytes).unwrap();
    bytes
}

fn read(text: &str) -> Reading {
    read_trace_with(text.as_bytes(), &ReadOptions::default()).unwrap()
}

/// Describes all unknown data, independently of the order of ids.
pub(crate) fn passthrough_of(profile: &Profile) -> Vec<String> {
    let passthrough = profile.passthrough();
    let most = profile.events().len().max(profile.memory().len());
    let mut lines = Vec::new();
    for kind in PassthroughKind::ALL {
        if kind == PassthroughKind::Track {
            continue;
        }
        let texts = (0..most).filter_map(|index| Some((index, passthrough.of(kind, index)?)));
        lines.extend(
            texts.map(|(index, text)| format!("{kind:?} {index} {}", passthrough.texts.text(text))),
        );
    }
    let of_threads = lines.len();
    for (index, thread) in profile.threads().iter().enumerate() {
        let text = passthrough.of(PassthroughKind::Track, index);
        lines.extend(text.map(|text| {
            let (process, native, device) = (thread.process, thread.native, thread.device);
            let text = passthrough.texts.text(text);
            format!("Track {process} {native} {device:?} {text}")
        }));
    }
    lines[of_threads..].sort();
    lines.extend(passthrough.unknown_events().iter().map(|record| {
        let thread = profile.threads()[record.thread.index()];
        let text = passthrough.texts.text(record.text);
        format!(
            "{} {} {} {text}",
            record.time_ns, thread.process, thread.native
        )
    }));
    lines
}

#[test]
fn a_phase_that_is_no_letter_makes_no_event() {
    let trace = r#"[{"ph":"é","ts":1},{"ph":"\\","ts":1},{"ph":"C","ts":1,"args":{"x":1}}]"#;
    let reading = read(trace);
    assert_eq!(reading.profile.passthrough().unknown_events().len(), 1);
    let again = read(&String::from_utf8(written(&reading.profile)).unwrap());
    assert!(again.repairs.iter().next().is_none());
}

/// Returns the events of a trace by identity, with all of their data.
fn by_identity(trace: &Value) -> BTreeMap<String, Vec<&Value>> {
    let mut found: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        let is_moment = event["ph"] == "i" && event["cat"].is_string();
        if event["ph"] == "X" || is_moment {
            let keys = ["ph", "cat", "name", "pid", "ts", "dur"];
            let identity = keys.map(|key| event[key].to_string()).join(" ");
            found.entry(identity).or_default().push(event);
        }
    }
    found
}

fn keys_of(object: &Value) -> BTreeSet<&str> {
    let entries = object.as_object().into_iter().flatten();
    entries.map(|(key, _)| key.as_str()).collect()
}

/// Fields that the writer renumbers, and the track, which may be an overflow track. Arguments are
/// compared one by one.
const TOLD_ANEW: [&str; 3] = ["Ev Idx", "tid", "args"];

#[test]
fn recorded_traces_keep_every_key_of_every_event() {
    for session in Session::ALL {
        let profile = read_trace_file(&session.trace_path()).unwrap();
        let before: Value = serde_json::from_slice(&session.trace()).unwrap();
        let after: Value = serde_json::from_slice(&written(&profile)).unwrap();
        let after = by_identity(&after);
        let mut checked = 0;
        for (identity, events) in by_identity(&before) {
            let again = after.get(&identity).map_or(&[][..], Vec::as_slice);
            assert_eq!(events.len(), again.len(), "{session:?} {identity}");
            for (event, again) in events.iter().zip(again) {
                for (old, new) in [(*event, *again), (&event["args"], &again["args"])] {
                    let (old_keys, new_keys) = (keys_of(old), keys_of(new));
                    assert!(old_keys.is_subset(&new_keys), "{session:?} {event} {again}");
                    for key in old_keys.into_iter().filter(|key| !TOLD_ANEW.contains(key)) {
                        assert_eq!(old[key], new[key], "{session:?} {identity} {key}");
                    }
                }
                checked += 1;
            }
        }
        assert!(checked > 100, "{session:?}");
    }
}

/// Returns the facts about processes and threads. Of two with one name and place, the later one
/// counts.
fn facts_of(trace: &Value) -> BTreeMap<String, &Value> {
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let facts = events.filter(|event| event["ph"] == "M");
    let identity = |fact: &Value| format!("{} {} {}", fact["name"], fact["pid"], fact["tid"]);
    facts.map(|fact| (identity(fact), &fact["args"])).collect()
}

#[test]
fn recorded_traces_keep_the_facts_about_tracks_with_events() {
    for session in Session::ALL {
        let profile = read_trace_file(&session.trace_path()).unwrap();
        let threads = profile.threads().iter();
        let places: BTreeSet<String> = threads
            .flat_map(|thread| [0, thread.native].map(|tid| format!("{} {tid}", thread.process)))
            .chain(["\"Spans\" 0".into()])
            .collect();
        let before: Value = serde_json::from_slice(&session.trace()).unwrap();
        let after: Value = serde_json::from_slice(&written(&profile)).unwrap();
        let after = facts_of(&after);
        let mut kept = 0;
        for (identity, said) in facts_of(&before) {
            let (_, place) = identity.split_once(' ').unwrap();
            if places.contains(place) {
                assert_eq!(after.get(&identity), Some(&said), "{session:?} {identity}");
                kept += 1;
            }
        }
        assert!(kept >= 5, "{session:?} {kept}");
    }
}

#[test]
fn recorded_traces_keep_what_is_not_known_twice() {
    for session in Session::ALL {
        let profile = read_trace_file(&session.trace_path()).unwrap();
        let again = read_trace(&written(&profile)).unwrap();
        assert_eq!(
            passthrough_of(&again),
            passthrough_of(&profile),
            "{session:?}"
        );
    }
}

#[test]
fn counters_async_events_and_foreign_arrows_are_given_back() {
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 5.5, "dur": 2, "args": {"External id": 9}},
        {"ph": "C", "name": "queue", "pid": 1, "ts": 6.25, "args": {"length": 3}},
        {"ph": "b", "cat": "net", "name": "get", "id": "0x1f", "pid": 1, "tid": 2, "ts": 4.5},
        {"ph": "e", "cat": "net", "name": "get", "id": "0x1f", "pid": 1, "tid": 2, "ts": 7.5},
        {"ph": "s", "cat": "mine", "name": "to", "id": 8, "pid": 1, "tid": 2, "ts": 6},
        {"ph": "M", "name": "num_cpus", "pid": 1, "args": {"number": 2}}]}"#;
    let reading = read(text);
    assert_eq!(reading.profile.events()[0].start, Nanos::ZERO);
    let bytes = written(&reading.profile);
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    let found: Vec<_> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .take(5)
        .collect();
    let found: Vec<String> = found.iter().rev().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            r#"{"cat":"net","id":"0x1f","name":"get","ph":"b","pid":1,"tid":2,"ts":4.5}"#,
            r#"{"args":{"number":2},"name":"num_cpus","ph":"M","pid":1,"tid":0,"ts":5.5}"#,
            r#"{"cat":"mine","id":8,"name":"to","ph":"s","pid":1,"tid":2,"ts":6.0}"#,
            r#"{"args":{"length":3},"name":"queue","ph":"C","pid":1,"tid":0,"ts":6.25}"#,
            r#"{"cat":"net","id":"0x1f","name":"get","ph":"e","pid":1,"tid":2,"ts":7.5}"#,
        ]
    );
    let again = read_trace(&bytes).unwrap();
    assert_eq!(passthrough_of(&again), passthrough_of(&reading.profile));
}

#[test]
fn categories_fields_and_arguments_that_are_not_known_are_given_back() {
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"wait_on_stream": 3}},
        {"ph": "X", "cat": "gc", "name": "sweep", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "cname": "bad", "args": {"Bytes": 5, "name": "x"}},
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 5, "dur": 2,
         "args": {"External id": 4, "Record function id": 3, "Sequence number": -1, "finished": true, "Call stack": "", "Overload Name": "Tensor"}},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 2, "ts": 6, "s": "t",
         "args": {"Bytes": 5, "Addr": 6, "Device Type": 0, "Device Id": -1, "Total Allocated": 5, "Total Reserved": 0, "Pool": [1, 2]}}]}"#;
    let reading = read(text);
    assert_eq!(reading.repairs.total(), 0);
    assert_eq!(
        passthrough_of(&reading.profile),
        [
            r#"Category 0 "cuda_sync""#,
            r#"Category 1 "gc""#,
            r#"Fields 1 "cname":"bad""#,
            r#"Arguments 0 "wait_on_stream":3"#,
            r#"Arguments 1 "name":"x","Bytes":5"#,
            r#"Arguments 2 "Overload Name":"Tensor","Call stack":"","Sequence number":-1,"finished":true,"Record function id":3"#,
            r#"MemoryArguments 0 "Pool":[1, 2]"#,
        ]
    );
    let again = read_trace(&written(&reading.profile)).unwrap();
    assert_eq!(passthrough_of(&again), passthrough_of(&reading.profile));
}

#[test]
fn what_is_no_json_becomes_a_text() {
    let text = r#"[{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2,
        "args": {"bandwidth": NaN, "grid": [1, 2,], "bl\ock": 3}}]"#;
    let reading = read(text);
    assert_eq!(reading.repairs.total(), 1);
    let trace: Value = serde_json::from_slice(&written(&reading.profile)).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let kernel = events
        .iter()
        .find(|event| event["cat"] == "kernel")
        .unwrap();
    assert_eq!(kernel["args"]["bandwidth"], "NaN");
    assert_eq!(kernel["args"]["grid"], "[1, 2,]");
    assert_eq!(kernel["args"]["bl\\ock"], 3);
}

/// Returns a profile with events on one thread that have these arguments.
fn profile_with(passthrough: &[Vec<(String, Value)>], records: &[(i64, String)]) -> Profile {
    let mut builder = Part::new();
    builder.reference_unix_ns = 1 << 60;
    let name = builder.strings.intern("a");
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 2,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    for (index, entries) in passthrough.iter().enumerate() {
        // Later events come first, so that they have to be sorted.
        let start = Nanos(1000 - index as u64);
        let category = [Category::Operator, Category::Runtime, Category::Other][index % 3];
        builder.add_event(Event::new(category, name, thread, start, Nanos(1)));
        let entries: Vec<_> = entries
            .iter()
            .map(|(key, value)| format!("{}:{value}", Value::from(format!("x {key}"))))
            .collect();
        if !entries.is_empty() {
            let text = builder.passthrough.texts.add(&entries.join(",")).unwrap();
            let kind = [PassthroughKind::Arguments, PassthroughKind::Fields][index / 3 % 2];
            builder.passthrough.set(kind, index, text);
        }
    }
    for (time_ns, name) in records {
        let text = format!("\"ph\":\"C\",\"name\":{}", Value::from(name.as_str()));
        let text = builder.passthrough.texts.add(&text).unwrap();
        builder.passthrough.add_unknown_event(UnknownEvent {
            time_ns: *time_ns,
            thread,
            text,
        });
    }
    builder.into_profile().unwrap()
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any::<Vec<u16>>().prop_map(Value::from),
    ]
}

proptest! {
    #[test]
    fn anything_that_is_not_known_survives_being_written(
        passthrough in prop::collection::vec(prop::collection::vec((any::<String>(), any_value()), 0..4), 1..12),
        records in prop::collection::vec((-1_i64 << 40..1 << 40, any::<String>()), 0..4),
    ) {
        let profile = profile_with(&passthrough, &records);
        let again = read_trace_with(&written(&profile), &ReadOptions::default()).unwrap();
        prop_assert_eq!(again.repairs.total(), 0);
        prop_assert_eq!(passthrough_of(&again.profile), passthrough_of(&profile));
    }
}
