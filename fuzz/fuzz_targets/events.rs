//! Traces put together from the keys and values that real ones have, in any order, cut and damaged.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mindprof_formats::{ReadOptions, read_trace_with, write_trace};

#[derive(Arbitrary, Debug)]
struct Trace {
    is_object: bool,
    events: Vec<Vec<Entry>>,
    /// Bytes that are put in somewhere, and where the text is cut off.
    damage: Vec<(u16, u8)>,
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

const KEYS: [&str; 9] = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id"];
const ARGUMENTS: [&str; 21] = [
    "Sequence number",
    "Fwd thread id",
    "Input Dims",
    "Input type",
    "Input Strides",
    "Concrete Inputs",
    "finished",
    "Async",
    "name",
    "Call stack",
    "External id",
    "correlation",
    "Python id",
    "Python parent id",
    "Bytes",
    "Addr",
    "Total Allocated",
    "Total Reserved",
    "Device Type",
    "Device Id",
    "stream",
];
const VALUES: [&str; 36] = [
    "\"X\"",
    "\"B\"",
    "\"E\"",
    "\"i\"",
    "\"M\"",
    "\"C\"",
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

fn pick(texts: &[&'static str], index: u8) -> &'static str {
    texts[usize::from(index) % texts.len()]
}

fn event(entries: &[Entry]) -> String {
    let mut parts = vec!["\"ph\":\"X\",\"ts\":1.5,\"dur\":2.25".to_owned()];
    let mut arguments = Vec::new();
    for entry in entries {
        match entry {
            Entry::Known(key, value) => {
                parts.push(format!("\"{}\": {}", pick(&KEYS, *key), pick(&VALUES, *value)));
            }
            Entry::Argument(key, value) => {
                let key = pick(&ARGUMENTS, *key);
                arguments.push(format!("\"{key}\": {}", pick(&VALUES, *value)));
            }
            Entry::Number(key, value) => {
                arguments.push(format!("\"{}\":{value}", pick(&ARGUMENTS, *key)));
            }
            Entry::Time(key, value) => parts.push(format!("\"{}\":{value:?}", pick(&KEYS, *key))),
            Entry::Text(key, value) => {
                parts.push(format!("\"{}\":{value:?}", pick(&KEYS, *key)));
            }
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
    }
});
