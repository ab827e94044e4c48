//! Feeds traces assembled from the keys and values of real ones, in any order, with bytes overwritten and the
//! end cut off. A trace that the reader accepts must round-trip.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mindprof_trace::{ARGUMENT_KEYS, EVENT_KEYS, ReadOptions, read_trace_with, write_trace};
use mindprof_model::{PassthroughKind, Profile};

#[derive(Arbitrary, Debug)]
struct Trace {
    is_object: bool,
    events: Vec<Vec<Entry>>,
    /// Bytes to overwrite, as positions and values.
    damage: Vec<(u16, u8)>,
    /// The length to truncate the text to.
    cut: Option<u16>,
}

#[derive(Arbitrary, Debug)]
enum Entry {
    Known(u8, u8),
    Argument(u8, u8),
    Number(u8, i64),
    Time(u8, f64),
    Text(u8, String),
}

/// Keys that the reader does not know, mixed with those it does.
const STRANGE_KEYS: [&str; 3] = ["id", "bp", "cname"];
const STRANGE_ARGUMENTS: [&str; 4] = ["stream", "grid", "warps per SM", ""];
const VALUES: [&str; 44] = [
    "\"X\"",
    "\"B\"",
    "\"E\"",
    "\"i\"",
    "\"M\"",
    "\"C\"",
    "\"b\"",
    "\"e\"",
    "\"s\"",
    "\"cuda_sync\"",
    "\"0x1f\"",
    "\"file.py:12\"",
    "\"file.py(12): f;\"",
    "0.007576",
    "\"cpu_op\"",
    "\"user_annotation\"",
    "\"python_function\"",
    "\"kernel\"",
    "\"gpu_user_annotation\"",
    "\"cuda_runtime\"",
    "\"xpu_runtime\"",
    "\"Trace\"",
    "\"[memory]\"",
    "\"thread_name\"",
    "\"autograd::engine::evaluate_function: M\"",
    "\"M\"",
    "\"a;b;\"",
    "\"CPU functions\"",
    "1",
    "7",
    "-1",
    "3844538297286.281",
    "\"5.5\"",
    "NaN",
    "-Infinity",
    "1e300",
    "9223372036854775807",
    "true",
    "null",
    "[]",
    "[[2, 3], [], [[4]]]",
    "[\"float\", \"Scalar\", \"TensorList\"]",
    "[\"\", \"[1, 2]\", \"True\"]",
    "{\"a\": [\"}\"]}",
];

fn pick(known: &[&'static str], strange: &[&'static str], index: u8) -> &'static str {
    let texts = [known, strange].concat();
    texts[usize::from(index) % texts.len()]
}

fn key(index: u8) -> &'static str {
    pick(&EVENT_KEYS, &STRANGE_KEYS, index)
}

fn argument(index: u8) -> &'static str {
    pick(&ARGUMENT_KEYS, &STRANGE_ARGUMENTS, index)
}

fn value(index: u8) -> &'static str {
    pick(&VALUES, &[], index)
}

fn event(entries: &[Entry]) -> String {
    let mut parts = vec!["\"ph\":\"X\",\"ts\":1.5,\"dur\":2.25".to_owned()];
    let mut arguments = Vec::new();
    for entry in entries {
        match entry {
            Entry::Known(index, chosen) => {
                parts.push(format!("\"{}\": {}", key(*index), value(*chosen)));
            }
            Entry::Argument(index, chosen) => {
                arguments.push(format!("\"{}\": {}", argument(*index), value(*chosen)));
            }
            Entry::Number(index, number) => {
                arguments.push(format!("\"{}\":{number}", argument(*index)));
            }
            Entry::Time(index, time) => parts.push(format!("\"{}\":{time:?}", key(*index))),
            Entry::Text(index, text) => parts.push(format!("\"{}\":{text:?}", key(*index))),
        }
    }
    format!("{{{},\n \"args\": {{{}}}}}", parts.join(", "), arguments.join(","))
}

fuzz_target!(|trace: Trace| {
    let events: Vec<_> = trace.events.iter().map(|entries| event(entries)).collect();
    let events = events.join(",\n");
    let mut text = if trace.is_object {
        format!("{{\"schemaVersion\": 1, \"traceEvents\": [{events}]}}").into_bytes()
    } else {
        format!("[{events}]").into_bytes()
    };
    for &(at, byte) in &trace.damage {
        let at = usize::from(at) % text.len();
        text[at] = byte;
    }
    if let Some(cut) = trace.cut {
        text.truncate(usize::from(cut) % text.len());
    }
    if let Ok(reading) = read_trace_with(&text, &ReadOptions::default()) {
        let mut written = Vec::new();
        write_trace(&reading.profile, "trace.json", &mut written).expect("memory takes all bytes");
        let again = read_trace_with(&written, &ReadOptions::default()).expect("it is a trace");
        assert_eq!(again.profile.events().len(), reading.profile.events().len());
        let said = |profile: &Profile| {
            let passthrough = profile.passthrough();
            (passthrough.unknown_events().len(), PassthroughKind::ALL.map(|kind| passthrough.count(kind)))
        };
        assert_eq!(said(&again.profile), said(&reading.profile));
    }
});
