//! Traces of other tools: their contents survive being read and written again.

use mindprof_model::{EventId, Flags, Profile};
use mindprof_trace::{ReadOptions, Reading, read_trace, read_trace_with, write_trace};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::round_trip::describe;

fn read(events: &Value) -> Reading {
    let text = json!({ "traceEvents": events }).to_string();
    read_trace_with(text.as_bytes(), &ReadOptions::default()).unwrap()
}

/// Reads a trace, writes it, and returns the written events. Reading those must yield the same
/// profile.
fn converted(events: &Value) -> Vec<Value> {
    let reading = read(events);
    assert_eq!(reading.repairs.total(), 0, "{events}");
    let bytes = written(&reading.profile);
    let again = read_trace(&bytes).unwrap();
    assert_eq!(describe(&again), describe(&reading.profile));
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_trace(profile, "trace.json", &mut bytes).unwrap();
    bytes
}

fn named<'a>(events: &'a [Value], name: &str) -> &'a Value {
    let mut found = events.iter().filter(|event| event["name"] == name);
    let event = found.next().unwrap();
    assert!(found.next().is_none(), "{name} is there twice");
    event
}

#[test]
fn ends_give_their_arguments_to_their_begins() {
    let events = converted(&json!([
        {"ph": "B", "name": "outer", "pid": 1, "tid": 2, "ts": 1, "args": {"a": 1, "b": [2]}},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 2, "ts": 2},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 3, "args": {"c": {"d": null}}, "tts": 7},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 5, "args": {"b": "later", "correlation": 9}},
    ]));
    let (outer, inner) = (named(&events, "outer"), named(&events, "inner"));
    assert_eq!((&outer["ph"], &outer["dur"]), (&json!("X"), &json!(4.0)));
    let arguments = json!({"a": 1, "b": "later", "correlation": 9});
    assert_eq!(outer["args"], arguments);
    assert_eq!(inner["args"], json!({"c": {"d": null}}));
    assert_eq!(inner["tts"], 7);
}

#[test]
fn what_an_end_says_of_an_operator_is_understood() {
    let reading = read(&json!([
        {"ph": "B", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1,
         "args": {"Sequence number": -1, "External id": 3}},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 3, "args": {"Sequence number": 5}},
    ]));
    let event = reading.profile.events()[0];
    assert_eq!(event.sequence(), Some(5));
    assert!(reading.profile.passthrough().is_empty());
    let links = reading.profile.links(EventId::from_raw(0)).unwrap();
    assert_eq!(links.external, 3);
}

#[test]
fn arguments_that_are_no_object_are_kept_as_one_argument() {
    let events = converted(&json!([
        {"ph": "X", "name": "text", "pid": 1, "tid": 2, "ts": 1, "dur": 1, "args": "why"},
        {"ph": "X", "name": "list", "pid": 1, "tid": 2, "ts": 3, "dur": 1, "args": [1, {"b": 2}]},
        {"ph": "X", "name": "null", "pid": 1, "tid": 2, "ts": 5, "dur": 1, "args": null},
    ]));
    assert_eq!(named(&events, "text")["args"]["args"], "why");
    assert_eq!(named(&events, "list")["args"]["args"], json!([1, {"b": 2}]));
    assert_eq!(named(&events, "null")["args"], json!({}));
}

#[test]
fn moments_stay_moments() {
    let given = json!([
        {"ph": "i", "name": "tick", "pid": 1, "tid": 2, "ts": 1, "s": "p", "args": {"a": 1}},
        {"ph": "I", "name": "tock", "pid": 1, "tid": 2, "ts": 2},
        {"ph": "i", "cat": "cpu_op", "name": "mark", "pid": 1, "tid": 2, "ts": 3, "s": "g"},
    ]);
    let profile = read(&given).profile;
    let are_moments = profile.events().iter();
    assert!(
        are_moments
            .map(|event| event.flags)
            .all(|flags| flags.contains(Flags::INSTANT))
    );
    let events = converted(&given);
    for (name, scope) in [
        ("tick", json!("p")),
        ("tock", Value::Null),
        ("mark", json!("g")),
    ] {
        let event = named(&events, name);
        assert_eq!((&event["ph"], &event["s"]), (&json!("i"), &scope));
        assert_eq!(event.get("dur"), None);
    }
    assert_eq!(named(&events, "tick")["args"]["a"], 1);
}

#[test]
fn types_of_elements_keep_their_names() {
    let types = [
        "c10::Float8_e4m3fn",
        "c10::Float8_e5m2",
        "c10::Float4_e2m1fn_x2",
        "short unsigned int",
        "c10::dummy_uint1_7_t<4>",
        "not a type",
        "TensorList",
    ];
    let (dims, strides) = (json!([2, 2]), json!([2, 1]));
    let events = converted(&json!([{
    "ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1, "dur": 1,
    "args": {
        "External id": 1, "Record function id": 0,
        "Input type": types,
        "Input Dims": [dims, dims, dims, dims, dims, dims, [dims]],
        "Input Strides": [strides, strides, strides, strides, strides, strides, [strides]],
        "Concrete Inputs": ["", "", "", "", "", "a text", ""]
    }}]));
    let arguments = &named(&events, "a")["args"];
    assert_eq!(arguments["Input type"], json!(types));
    assert_eq!(arguments["Input Dims"][5], dims);
    assert_eq!(arguments["Input Strides"][6], json!([strides]));
    assert_eq!(arguments["Concrete Inputs"][5], "a text");
}

#[test]
fn processes_and_threads_keep_what_is_said_of_them() {
    let facts = json!([
        {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "Browser"}},
        {"ph": "M", "name": "process_labels", "pid": 7, "args": {"labels": "tab"}},
        {"ph": "M", "name": "process_sort_index", "pid": 7, "args": {"sort_index": -5}},
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": "CrMain"}},
        {"ph": "M", "name": "thread_sort_index", "pid": 7, "tid": 8, "args": {"sort_index": -1}},
    ]);
    let mut given = facts.as_array().unwrap().clone();
    given.push(json!({"ph": "X", "name": "a", "pid": 7, "tid": 8, "ts": 1, "dur": 1}));
    let events = converted(&Value::from(given));
    for fact in facts.as_array().unwrap() {
        let is_it = |event: &&Value| event["name"] == fact["name"] && event["pid"] == 7;
        let found: Vec<_> = events.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{fact}");
        assert_eq!(found[0]["args"], fact["args"]);
    }
}

#[test]
fn texts_for_processes_and_threads_stay_texts() {
    let given = json!([
        {"ph": "X", "name": "a", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1, "dur": 4},
        {"ph": "X", "name": "b", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 3, "dur": 5},
        {"ph": "X", "name": "c", "pid": "Spans", "tid": 1, "ts": 3, "dur": 5},
        {"ph": "C", "name": "d", "pid": 1, "tid": "other", "ts": 3, "args": {"x": 1}},
    ]);
    let reading = read(&given);
    let events = written(&reading.profile);
    let again = read_trace(&events).unwrap();
    assert_eq!(describe(&again), describe(&reading.profile));
    let events: Value = serde_json::from_slice(&events).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    let place = |name| {
        let event = named(events, name);
        (event["pid"].clone(), event["tid"].clone())
    };
    assert_eq!(place("a"), (json!("Spans"), json!("PyTorch Profiler")));
    // It crosses the event before it, and is drawn on an overflow track.
    assert_eq!(place("b").0, "Spans");
    assert_eq!(place("c"), (json!("Spans"), json!(1)));
    assert_eq!(place("d"), (json!(1), json!("other")));
}

fn any_argument() -> impl Strategy<Value = (String, Value)> {
    let keys = prop::sample::select(vec![
        "x",
        "y z",
        "Bytes",
        "name",
        "args",
        "finished",
        "External id",
        "correlation",
        "Sequence number",
        "Call stack",
        "Input Dims",
        "Input type",
        "Ev Idx",
        "Python id",
        "sort_index",
        "labels",
    ]);
    (keys.prop_map(str::to_owned), any_value())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaves = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        (-99..99_i32).prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        "[a;é\"\\\\ ]{0,3}".prop_map(Value::from),
        Just(json!(["float", "c10::Float8_e5m2"])),
        Just(json!([[2, 3], []])),
    ];
    leaves.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[ab]{1,2}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns a label of a process or a thread.
fn any_label() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..3_i64).prop_map(Value::from),
        prop::sample::select(vec!["Spans", "w", "", "1"]).prop_map(Value::from),
    ]
}

fn any_plain_event() -> impl Strategy<Value = Value> {
    let phases = prop::sample::select(vec!["X", "X", "B", "E", "i", "I", "C", "b", "e", "M", "s"]);
    let names = prop::sample::select(vec![
        "a",
        "b",
        "[memory]",
        "process_name",
        "thread_name",
        "process_sort_index",
        "Record Window End",
    ]);
    let categories = prop::sample::select(vec![
        "",
        "gc",
        "cpu_op",
        "other",
        "kernel",
        "python_function",
        "Trace",
        "user_annotation",
    ]);
    let fields = prop::collection::btree_map("(s|id|tts|cname)", any_value(), 0..2);
    let arguments = prop_oneof![
        8 => prop::collection::vec(any_argument(), 0..4)
            .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        1 => any_value(),
    ];
    let times = (0..50_u32, 0..9_u32);
    let places = (any_label(), any_label());
    let parts = (
        phases,
        names,
        prop::option::of(categories),
        fields,
        arguments,
        times,
        places,
    );
    parts.prop_map(
        |(phase, name, category, fields, arguments, (start, duration), (process, thread))| {
            let mut event: Map<String, Value> = fields.into_iter().collect();
            event.insert("ph".into(), phase.into());
            event.insert("name".into(), name.into());
            event.insert("pid".into(), process);
            event.insert("tid".into(), thread);
            event.insert("ts".into(), (f64::from(start) / 4.0).into());
            event.insert("args".into(), arguments);
            event.extend(category.map(|category| ("cat".into(), category.into())));
            if phase == "X" {
                event.insert("dur".into(), (f64::from(duration) / 4.0).into());
            }
            event.into()
        },
    )
}

/// Returns the valid events of other tools, under names of their own.
fn sound_events(events: &[Value]) -> Vec<Value> {
    let mut sound = Vec::new();
    for (event, number) in events.iter().zip(0..) {
        let mut event = event.clone();
        event["name"] = format!("event {number}").into();
        let is_kept = matches!(
            event["ph"].as_str(),
            Some("X" | "i" | "C" | "b" | "e" | "s")
        );
        let is_torchs = ["cpu_op", "kernel", "python_function", "user_annotation"]
            .contains(&event["cat"].as_str().unwrap_or_default());
        if is_kept && !is_torchs {
            // Numbers are compared as they are parsed, not as they were generated.
            sound.push(serde_json::from_str(&event.to_string()).unwrap());
        }
    }
    sound
}

/// Returns whether a value was reproduced, perhaps in an equivalent form.
fn is_said_again(key: &str, old: &Value, new: &Value) -> bool {
    let in_quotes: Option<i64> = old.as_str().and_then(|text| text.parse().ok());
    let is_number_in_quotes = in_quotes.is_some() && in_quotes == new.as_i64();
    match key {
        "pid" => old == new || is_number_in_quotes,
        // The event may be on an overflow track, and arguments that are not an object become one.
        "tid" | "args" => true,
        _ => old == new,
    }
}

proptest! {
    #[test]
    fn every_key_of_plain_events_survives(events in prop::collection::vec(any_plain_event(), 1..12)) {
        let events = sound_events(&events);
        let profile = read(&Value::from(events.clone())).profile;
        let trace: Value = serde_json::from_slice(&written(&profile)).unwrap();
        let written = trace["traceEvents"].as_array().unwrap();
        for event in &events {
            let again = named(written, event["name"].as_str().unwrap());
            for (key, old) in event.as_object().unwrap() {
                prop_assert!(is_said_again(key, old, &again[key]), "{key}: {event} {again}");
            }
            match &event["args"] {
                Value::Null => {}
                Value::Object(arguments) => {
                    let arguments = arguments.iter().filter(|(key, _)| *key != "Ev Idx");
                    for (key, old) in arguments {
                        prop_assert_eq!(Some(old), again["args"].get(key), "{} {}", key, again);
                    }
                }
                value if event["ph"] == "X" || event["ph"] == "i" => {
                    prop_assert_eq!(value, &again["args"]["args"]);
                }
                value => prop_assert_eq!(value, &again["args"]),
            }
        }
    }

    #[test]
    fn any_plain_trace_reads_the_same_again(events in prop::collection::vec(any_plain_event(), 1..12)) {
        let profile = read(&Value::from(events)).profile;
        let again = read_trace_with(&written(&profile), &ReadOptions::default()).unwrap();
        prop_assert_eq!(again.repairs.iter().collect::<Vec<_>>(), []);
        prop_assert_eq!(describe(&again.profile), describe(&profile));
    }
}
