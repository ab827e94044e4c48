use mindprof_model::{Category, DeviceKind, Flags, Nanos, ScopeKind};

use super::*;
use crate::read_trace;

fn error_of(text: &str) -> String {
    read_trace(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_window_gives_time_zero_and_span() {
    let profile = read_trace(
        br#"{"baseTimeNanoseconds": 1790857026000000000, "host": {"a": 1}, "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "late", "pid": 7, "tid": 8, "ts": 3844538297286.281, "dur": 0.390},
            {"ph": "X", "cat": "cpu_op", "name": "early", "pid": 7, "tid": 8, "ts": "3844538297286", "dur": 1},
            {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": "thread 8 (worker)"}},
            {"ph": "X", "cat": "Trace", "name": "w", "pid": "Spans", "tid": "p", "ts": 3844538297280.000, "dur": 20.5}
        ]}"#,
    )
    .unwrap();
    assert_eq!(
        profile.reference_unix_ns(),
        1_790_857_026_000_000_000 + 3_844_538_297_280_000
    );
    assert_eq!(profile.span(), Nanos(20_500));
    let times: Vec<_> = profile
        .events()
        .iter()
        .map(|event| (profile.name(event), event.start.0, event.duration.0))
        .collect();
    assert_eq!(times, [("early", 6_000, 1_000), ("late", 6_281, 390)]);
    let thread = profile.threads()[0];
    assert_eq!((thread.process, thread.native), (7, 8));
    assert_eq!(profile.strings().text(thread.name), "worker");
    assert_eq!(profile.metadata().get("host"), Some("{\"a\": 1}"));
}

#[test]
fn an_event_before_the_window_moves_time_zero() {
    let profile = read_trace(
        br#"[{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 5, "dur": 1},
             {"ph": "X", "cat": "Trace", "name": "w", "ts": 10, "dur": 2}]"#,
    )
    .unwrap();
    assert_eq!(profile.events()[0].start, Nanos(0));
    assert_eq!(profile.span(), Nanos(7_000));
}

#[test]
fn categories_and_devices_are_told_apart() {
    let profile = read_trace(
        br#"[{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 1},
             {"ph": "X", "cat": "cuda_runtime", "name": "r", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
             {"ph": "X", "cat": "what", "name": "o", "pid": 0, "tid": -7, "ts": 2, "dur": 1},
             {"ph": "X", "name": "l", "pid": "CPU functions", "tid": 1, "ts": 3, "dur": 1},
             {"ph": "X", "cat": "cpu_op", "name": "aten::is_leaf", "pid": 0, "tid": 7, "ts": 4, "dur": 1}]"#,
    )
    .unwrap();
    let kinds: Vec<_> = profile
        .events()
        .iter()
        .map(|event| {
            (
                event.category,
                profile.threads()[event.thread.index()].device,
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            (Category::Kernel, DeviceKind::Cuda),
            (Category::Runtime, DeviceKind::Cpu),
            (Category::Other, DeviceKind::Cpu),
            (Category::Operator, DeviceKind::Cpu),
            (Category::Operator, DeviceKind::Cpu),
        ]
    );
    assert!(profile.events()[4].flags.contains(Flags::HIDDEN));
}

#[test]
fn backward_nodes_are_known_by_their_forward_thread() {
    let profile = read_trace(
        br#"[{"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: X", "ts": 0, "dur": 9, "args": {"Sequence number": 3, "Fwd thread id": 1}},
             {"ph": "X", "cat": "cpu_op", "name": "X", "ts": 1, "dur": 7, "args": {"Sequence number": 3, "Fwd thread id": 1, "Sequence number": 4}}]"#,
    )
    .unwrap();
    let facts: Vec<_> = profile
        .events()
        .iter()
        .map(|e| (e.sequence(), e.scope))
        .collect();
    assert_eq!(
        facts,
        [
            (Some(3), ScopeKind::Function),
            (Some(4), ScopeKind::Backward)
        ]
    );
}

#[test]
fn events_without_a_usable_time_are_counted_as_lost() {
    let profile = read_trace(
        br#"[{"ph": "X", "cat": "cpu_op", "name": "a", "ts": "soon", "dur": 1},
             {"ph": "X", "cat": "cpu_op", "name": "b", "ts": 1, "dur": -1},
             {"ph": "X", "cat": "cpu_op", "name": "c", "ts": 1e300, "dur": 1},
             {"ph": "X", "cat": "cpu_op", "name": "d", "ts": 1, "dur": 1}]"#,
    )
    .unwrap();
    assert_eq!(profile.events().len(), 1);
    assert_eq!(profile.loss().count(LossCause::Damaged), 3);
}

#[test]
fn errors_say_what_and_where() {
    assert_eq!(error_of(""), "the file is empty, expected a Chrome trace");
    assert_eq!(
        error_of(" \n"),
        "the file is empty, expected a Chrome trace"
    );
    assert_eq!(
        error_of("{\"traceEvents\": [{\"ph\": \"X\",\n \"na"),
        "the JSON ends too early, at line 2 column 4: the file was cut off"
    );
    assert_eq!(
        error_of("{\"traceEvents\": [}"),
        "not valid JSON at line 1 column 18: expected value"
    );
    assert_eq!(
        error_of("{\"a\": 1}"),
        "no Chrome trace at line 1 column 8: expected the key \"traceEvents\" in the object"
    );
    assert_eq!(
        error_of("42"),
        "no Chrome trace at line 1 column 2: invalid type: integer `42`, expected an object with \"traceEvents\" or an array of events"
    );
    assert_eq!(
        error_of("[1]"),
        "no Chrome trace at line 1 column 2: invalid type: integer `1`, expected a trace event, which is an object"
    );
    assert!(error_of("PK\x03\x04").starts_with("not valid JSON at line 1 column 1"));
}
