//! How much unknown data is kept, and that it is kept unchanged however often it repeats.

use std::fmt::Write as _;

use mindprof_model::PassthroughKind;
use mindprof_trace::{ReadOptions, Reading, UnknownArgs, read_trace_with};
use proptest::prelude::*;
use serde_json::Value;

use crate::passthrough::passthrough_of;

fn read(trace: &str, unknown: UnknownArgs) -> Reading {
    let options = ReadOptions {
        unknown,
        ..ReadOptions::default()
    };
    read_trace_with(trace.as_bytes(), &options).unwrap()
}

/// Returns a trace of `count` events of one kind; `event` receives random numbers.
fn trace(count: u64, event: impl Fn(u64, [u64; 3]) -> String) -> String {
    let mut state = 1_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = String::from("[");
    for index in 0..count {
        let numbers = [next(), next(), next()];
        writeln!(text, "{},", event(index, numbers)).unwrap();
    }
    text.truncate(text.len() - 2);
    text + "]"
}

fn copies(index: u64, [bytes, rate, _]: [u64; 3]) -> String {
    format!(
        r#"{{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": {index}.500, "dur": 1.25, "args": {{"External id": {index}, "device": 0, "context": 1, "stream": 7, "correlation": {index}, "bytes": {}, "memory bandwidth (GB/s)": {}}}}}"#,
        bytes % (1 << 20),
        rate as f64 / u64::MAX as f64,
    )
}

fn counters(index: u64, [value, ..]: [u64; 3]) -> String {
    format!(
        r#"{{"ph": "C", "name": "queue", "pid": 1, "tid": 1, "ts": {index}, "args": {{"length": {}}}}}"#,
        value >> 34
    )
}

fn asynchronous(index: u64, _: [u64; 3]) -> String {
    format!(
        r#"{{"ph": "b", "cat": "net", "name": "get", "id": "{:#x}", "pid": 1, "tid": 1, "ts": {index}}}"#,
        0x7f00_0000_0000 + index * 64
    )
}

fn marked(index: u64, [high, low, _]: [u64; 3]) -> String {
    format!(
        r#"{{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": {index}, "dur": 1, "args": {{"uuid": "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}"}}}}"#,
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff,
    )
}

type Event = fn(u64, [u64; 3]) -> String;

const KINDS: [(&str, Event); 4] = [
    ("copies", copies),
    ("counters", counters),
    ("asynchronous events", asynchronous),
    ("events with ids", marked),
];

#[test]
fn what_is_kept_is_a_small_part_of_the_trace() {
    for (name, event) in KINDS {
        let trace = trace(20_000, event);
        let reading = read(&trace, UnknownArgs::Keep);
        assert!(reading.left_out.is_empty(), "{name}");
        let passthrough = reading.profile.passthrough();
        let kept =
            passthrough.count(PassthroughKind::Arguments) + passthrough.unknown_events().len();
        assert_eq!(kept, 20_000, "{name}");
        let part = passthrough.bytes() as f64 / trace.len() as f64;
        assert!(part < 0.25, "{name}: {part:.2} of the trace");
    }
}

#[test]
fn what_is_only_counted_takes_no_memory() {
    for (name, event) in KINDS {
        let trace = trace(1_000, event);
        let [kept, counted] =
            [UnknownArgs::Keep, UnknownArgs::Count].map(|unknown| read(&trace, unknown));
        assert!(counted.profile.passthrough().is_empty(), "{name}");
        assert_eq!(counted.set_aside, kept.set_aside, "{name}");
        assert_eq!(counted.profile.events(), kept.profile.events(), "{name}");
    }
}

#[test]
fn what_is_only_counted_is_repaired_alike() {
    let bad = r#"[{"ph":"X","name":"a","ts":1,"dur":1,"args":{"bad":"\q1"}},{"ph":"C","ts":1,"args":{"x":01}}]"#;
    let repairs = |unknown| read(bad, unknown).repairs.total();
    assert_eq!(repairs(UnknownArgs::Count), repairs(UnknownArgs::Keep));
    // The number counts by itself, and with the object that is no JSON because of it.
    assert_eq!(repairs(UnknownArgs::Keep), 3);
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        "(0|[1-9][0-9]{0,20})(\\.[0-9]{1,5})?(e-?[0-9]{1,2})?",
        "\"[0-9a-fx.-]{0,12}\"",
        "\"[0-9a-zA-Z]{8,20}\"",
        "\\[[1-9][0-9]{0,3}, ?0\\]",
        Just(r#""\u0031\n""#.to_owned()),
    ]
}

proptest! {
    /// The template of a text applies to all texts of that form.
    #[test]
    fn texts_of_one_form_are_kept_each_as_it_is(
        keys in prop::collection::vec("[a-z]{1,3}[0-9]{0,2}", 1..4),
        rows in prop::collection::vec(prop::collection::vec(any_value(), 3), 1..8),
        phase in prop_oneof![Just("X"), Just("C")],
    ) {
        let event = |index: usize, row: &Vec<String>| {
            let entries: Vec<_> = keys.iter().zip(row).map(|(key, value)| format!("\"{key}\": {value}")).collect();
            let entries = entries.join(", ");
            format!(r#"{{"ph":"{phase}","pid":1,"tid":1,"ts":{index},"dur":1,"args":{{{entries}}},"id":7}}"#)
        };
        let alone: Vec<_> = rows.iter().map(|row| passthrough_of(&read(&format!("[{}]", event(0, row)), UnknownArgs::Keep).profile)).collect();
        // The third of each is stored by the template that the second created.
        let events: Vec<_> = rows.iter().flat_map(|row| [row; 3]).enumerate().map(|(index, row)| event(index, row)).collect();
        let together = read(&format!("[{}]", events.join(",")), UnknownArgs::Keep);
        let texts = |lines: &[String], phase: &str| -> Vec<String> {
            let words = if phase == "X" { 2 } else { 3 };
            lines.iter().map(|line| line.splitn(words + 1, ' ').last().unwrap().to_owned()).collect()
        };
        let found = texts(&passthrough_of(&together.profile), phase);
        for (place, row) in alone.iter().enumerate() {
            for text in texts(row, phase) {
                prop_assert!(found.iter().filter(|other| **other == text).count() >= 3, "{place} {text}\n{found:?}");
            }
        }
        for text in &found {
            let object = format!("{{{text}}}");
            prop_assert!(serde_json::from_str::<Value>(&object).is_ok(), "{object}");
        }
    }
}
