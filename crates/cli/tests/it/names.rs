//! Hostile names in traces and paths: control characters never reach a terminal unescaped.

use std::fs;
use std::path::Path;

use crate::program::{run, write_trace};

const NAME: &str = "mm\u{1b}]0;title\u{7}\u{9b}31m\r\nfake row\u{7f}";

fn write_hostile_trace(path: &Path) {
    let call = |category: &str, name: &str, start: u64, duration: u64| {
        serde_json::json!({
            "ph": "X", "cat": category, "name": name, "pid": 1, "tid": 2, "ts": start, "dur": duration,
            "args": { "Call stack": format!("{NAME};{NAME}") },
        })
    };
    let memory = serde_json::json!({
        "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 2, "ts": 120,
        "args": { "Bytes": 64, "Addr": 1, "Device Id": -1, "Device Type": 0, "Total Allocated": 64 },
    });
    let thread = serde_json::json!({
        "ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": { "name": NAME },
    });
    let events = [
        call("cpu_op", NAME, 100, 50),
        call(NAME, NAME, 200, 50),
        memory,
        thread,
    ];
    let trace = serde_json::json!({ NAME: NAME, "traceEvents": events });
    fs::write(path, trace.to_string()).unwrap();
}

#[test]
fn control_characters_are_printed_as_escapes() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a\u{1b}[31m.json");
    let other = folder.path().join("other.json");
    write_hostile_trace(&trace);
    write_trace(&other, &[("mm", 1)]);
    let (trace, other) = (trace.to_str().unwrap(), other.to_str().unwrap());
    for arguments in [
        &["table", trace][..],
        &["table", trace, "--group-by", "stack"],
        &["table", trace, "--json"],
        &["info", trace],
        &["info", trace, "--json"],
        &["diff", trace, other],
        &[
            "diff",
            other,
            trace,
            "--fail-over",
            "1%",
            "--fail-on",
            "row",
        ],
        &["stacks", trace],
        &["stacks", trace, "--scopes"],
        &["stacks", trace, "--json"],
        &["memory", trace],
        &["verify", trace],
        &["table", "no\u{1b}[31m.json"],
    ] {
        let run = run(arguments);
        let printed = run.stdout + &run.stderr;
        let is_raw = |letter: char| letter != '\n' && letter.is_control();
        assert!(!printed.contains(is_raw), "{arguments:?}: {printed:?}");
        let is_broken = printed.lines().any(|line| line.starts_with("fake row"));
        assert!(!is_broken, "{arguments:?}: {printed}");
        assert!(printed.contains(r"\u001b"), "{arguments:?}: {printed}");
    }
}
