use mindprof_model::{Category, Damage, DeviceKind, Flags, Nanos, ScopeKind};

use super::*;
use crate::read::{read_trace, read_trace_with};
use crate::reading::Reading;

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
            {"ph": "X", "cat": "Trace", "name": "w", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 3844538297280.000, "dur": 20.5}
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
             {"ph": "X", "cat": "Trace", "name": "w", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 10, "dur": 2}]"#,
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
fn a_range_with_the_name_of_memory_is_a_range() {
    let profile = read_trace(
        br#"[{"ph": "X", "cat": "user_annotation", "name": "[memory]", "ts": 0, "dur": 9},
             {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1, "args": {"Bytes": 8}},
             {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 2},
             {"ph": "X", "name": "[memory]", "pid": "CPU functions", "ts": 3, "dur": 0}]"#,
    )
    .unwrap();
    let events = profile.events().iter();
    let hidden: Vec<_> = events
        .map(|event| (event.start.0, event.flags.contains(Flags::HIDDEN)))
        .collect();
    assert_eq!(hidden, [(0, false), (2_000, true), (3_000, true)]);
    let bytes: Vec<_> = profile.memory().iter().map(|record| record.bytes).collect();
    assert_eq!(bytes, [8]);
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

fn reading(text: &[u8]) -> Reading {
    read_trace_with(text, &ReadOptions::default()).unwrap()
}

fn told(reading: &Reading) -> Vec<(&'static str, u64)> {
    let repairs = reading.repairs.iter();
    repairs
        .map(|(repair, count, _)| (repair.key(), count))
        .collect()
}

fn times(reading: &Reading) -> Vec<(&str, u64, u64)> {
    let profile = &reading.profile;
    let events = profile.events().iter();
    events
        .map(|event| (profile.name(event), event.start.0, event.duration.0))
        .collect()
}

#[test]
fn events_without_a_usable_time_are_counted_as_lost() {
    let reading = reading(
        br#"[{"ph": "X", "name": "a", "ts": "soon", "dur": 1},
             {"ph": "X", "name": "b", "dur": 1},
             {"ph": "X", "name": "c", "ts": 1e300, "dur": 1},
             {"ph": "X", "name": "d", "ts": null, "dur": 1},
             {"ph": "X", "name": "e", "ts": NaN, "dur": 1},
             {"ph": "X", "name": "f", "ts": 1, "dur": 1}]"#,
    );
    assert_eq!(times(&reading), [("f", 0, 1000)]);
    assert_eq!(told(&reading), [("no_time", 5), ("not_a_number", 1)]);
    assert_eq!(reading.profile.loss().count(LossCause::Damaged), 5);
}

#[test]
fn a_note_of_lost_events_that_cannot_be_read_is_not_forgotten() {
    let read = |mark: &str| {
        let text = format!(
            r#"{{"mindprof": {mark}, "traceEvents": [{{"ph": "X", "name": "f", "ts": 1, "dur": 1}}]}}"#
        );
        reading(text.as_bytes())
    };
    for mark in [
        r#"{"lost": 90}"#,
        r#"{"lost": {"budget": "90"}}"#,
        r#"{"lost": {"budget": 90.0}}"#,
        r#"{"lost": {"budget": 1e30}}"#,
        r#"{"lost": {"budget": -90}}"#,
        r#"{"lost": {"budget": null}}"#,
        r#"{"lost": {"budget": 0, "future": 90}}"#,
        r#""{\"lost\": {\"budget\": 90}}""#,
    ] {
        let reading = read(mark);
        assert_eq!(told(&reading), [("unreadable_note", 1)], "{mark}");
        let damage = Damage::read(reading.profile.metadata());
        assert_eq!(damage.unreadable, 1, "{mark}");
    }
    for (mark, lost) in [
        (r#"{"version": "1"}"#, 0),
        (r#"{"lost": {"budget": 3, "future": 0}}"#, 3),
        (r#"{"lost": {"budget": 3}, "spare_tracks": 5}"#, 3),
    ] {
        let reading = read(mark);
        assert_eq!(told(&reading), [], "{mark}");
        assert_eq!(reading.profile.loss().total(), lost, "{mark}");
    }
}

#[test]
fn times_that_can_be_put_right_are() {
    let reading = reading(
        br#"[{"ph": "X", "name": "a", "ts": "1.5", "dur": "2"},
             {"ph": "X", "name": "b", "ts": 10, "dur": -1},
             {"ph": "X", "name": "c", "ts": 20, "dur": NaN},
             {"ph": "X", "name": "d", "ts": 30}]"#,
    );
    assert_eq!(
        times(&reading),
        [
            ("a", 0, 2000),
            ("b", 8500, 0),
            ("c", 18500, 0),
            ("d", 28500, 0)
        ]
    );
    assert_eq!(
        told(&reading),
        [
            ("string_timestamp", 2),
            ("not_a_number", 1),
            ("negative_duration", 1),
            ("no_duration", 1)
        ]
    );
    assert_eq!(reading.profile.loss().total(), 0);
}

/// ```text
/// a   |-------|            tid 1
/// b     |---|
/// c               |----    tid 1, never ended
/// d   |---|                tid 2, whose ends stand before its begin in the file
/// ```
#[test]
fn begins_and_ends_are_paired_on_their_thread() {
    let reading = reading(
        br#"[{"ph": "E", "ts": 5, "tid": 2}, {"ph": "E", "ts": 0, "tid": 2},
             {"ph": "B", "name": "a", "ts": 1, "tid": 1},
             {"ph": "B", "name": "b", "ts": 3, "tid": 1},
             {"ph": "E", "ts": 7, "tid": 1}, {"ph": "E", "name": "a", "ts": 9, "tid": 1},
             {"ph": "B", "name": "d", "ts": 1, "tid": 2},
             {"ph": "B", "name": "c", "ts": 13, "tid": 1},
             {"ph": "i", "name": "last", "ts": 18, "tid": 2}]"#,
    );
    assert_eq!(
        times(&reading),
        [
            ("a", 0, 8000),
            ("d", 0, 4000),
            ("b", 2000, 4000),
            ("c", 12_000, 5000),
            ("last", 17_000, 0)
        ]
    );
    assert_eq!(
        told(&reading),
        [("unmatched_begin", 1), ("unmatched_end", 1)]
    );
    assert!(
        reading.profile.events()[3]
            .flags
            .contains(Flags::UNFINISHED)
    );
}

#[test]
fn what_a_profile_does_not_understand_is_kept_and_counted() {
    let reading = reading(
        br#"[{"ph": "C", "name": "queue", "ts": 1, "args": {"length": 3}},
             {"ph": "s", "cat": "mine", "id": 1, "ts": 1}, {"ph": "f", "cat": "mine", "id": 1, "ts": 2},
             {"ph": "s", "cat": "ac2g", "id": 1, "ts": 1}, {"ph": "f", "cat": "fwdbwd", "id": 1, "ts": 2},
             {"ph": "M", "name": "process_labels", "args": {"labels": "CPU"}},
             {"ph": "M", "name": "num_cpus", "args": {"number": 2}},
             {"ph": "I", "name": "moment", "ts": 4}]"#,
    );
    assert_eq!(told(&reading), []);
    assert_eq!(times(&reading), [("moment", 0, 0)]);
    assert!(reading.left_out.is_empty());
    let set_aside: Vec<_> = reading.set_aside.iter().collect();
    assert_eq!(
        set_aside,
        [
            ('C', 1, "counters"),
            ('M', 1, "facts"),
            ('f', 1, "flows"),
            ('s', 1, "flows")
        ]
    );
}

/// ```text
/// a   |-------|
/// b       |-------|     ends after a
/// ```
#[test]
fn crossing_events_are_kept_and_counted() {
    let reading = reading(
        br#"[{"ph": "X", "name": "a", "ts": 0.5, "dur": 8}, {"ph": "X", "name": "b", "ts": 4.5, "dur": 8}]"#,
    );
    assert_eq!(told(&reading), [("crossing", 1)]);
    assert_eq!(times(&reading), [("a", 0, 8000), ("b", 4000, 8000)]);
}

/// A child whose end was rounded past its parent's end is moved back inside it.
#[test]
fn whole_microseconds_are_rounded_times() {
    let reading = reading(
        br#"[{"ph": "X", "name": "a", "ts": 0, "dur": 8}, {"ph": "X", "name": "b", "ts": 4, "dur": 5}]"#,
    );
    assert_eq!(told(&reading), [("shortened", 1)]);
    assert_eq!(times(&reading), [("a", 0, 8000), ("b", 4000, 4000)]);
}

#[test]
fn numbers_that_are_no_json_are_read_by_their_digits() {
    const OTHER: &str = r#"{"ph": "X", "name": "b", "ts": 20, "dur": 1}"#;
    for (number, count) in [("10", 0), ("010", 1), ("10.", 1), ("0010.", 1)] {
        let text = format!(r#"[{{"ph": "X", "name": "a", "ts": 1, "dur": {number}}}, {OTHER}]"#);
        let reading = reading(text.as_bytes());
        let expected = [("bad_number", count)].into_iter().filter(|_| count > 0);
        assert_eq!(told(&reading), expected.collect::<Vec<_>>(), "{text}");
        assert_eq!(times(&reading), [("a", 0, 10_000), ("b", 19_000, 1000)]);
    }
}

#[test]
fn the_array_may_stay_open() {
    const EVENT: &str = r#"{"ph": "X", "name": "a", "ts": 1, "dur": 1}"#;
    for behind in ["", " \n", ",\n", "]"] {
        let reading = reading(format!("[{EVENT}{behind}").as_bytes());
        assert_eq!(told(&reading), [], "{behind:?}");
        assert_eq!(reading.profile.events().len(), 1);
    }
}

#[test]
fn what_was_whole_is_kept_of_a_cut_trace() {
    const EVENT: &str = r#"{"ph": "X", "name": "a", "ts": 1, "dur": 1}"#;
    for text in [
        format!("[{EVENT}, {{\"ph\": \"X"),
        format!("{{\"traceEvents\": [{EVENT}"),
        format!("{{\"traceEvents\": [{EVENT}, "),
        format!("{{\"traceEvents\": [{EVENT}], \"trace"),
        format!("{{\"traceEvents\": [{EVENT}]"),
    ] {
        let reading = reading(text.as_bytes());
        assert_eq!(told(&reading), [("truncated", 1)], "{text}");
        assert_eq!(reading.profile.events().len(), 1);
        assert_eq!(reading.profile.loss().count(LossCause::Damaged), 1);
    }
}

#[test]
fn reading_goes_on_behind_what_is_damaged() {
    const A: &str = r#"{"ph": "X", "name": "a", "ts": 1, "dur": 1}"#;
    const B: &str = r#"{"ph": "X", "name": "b", "ts": 5, "dur": 1, "args": {"x": 1}}"#;
    for (text, repairs) in [
        (format!("[{A} {B}]"), [("malformed", 1)]),
        (format!("[{A},, {B}]"), [("malformed", 1)]),
        (format!("[{A}, {B},]"), [("malformed", 1)]),
        (format!("[{A}, {B}] x"), [("malformed", 1)]),
        (format!("[{A}, 17, {B}]"), [("not_an_event", 1)]),
        (format!("[{A}, {{\"x\": 1}}, {B}]"), [("not_an_event", 1)]),
        (format!("[{A}, \u{1}\u{2} {B}]"), [("malformed", 1)]),
        (
            format!("[{A}, {{\"ph\": \"X, \"name\": \"lost\", \"args\": {{\"x\": 1}} }}, {B}]"),
            [("malformed", 1)],
        ),
        (
            format!("{{\"a\" 1, \"traceEvents\": [{A}, {B}]}}"),
            [("malformed", 1)],
        ),
        (
            format!("{{\"traceEvents\": [{A}, {B}], 3}}"),
            [("malformed", 1)],
        ),
    ] {
        let reading = reading(text.as_bytes());
        assert_eq!(told(&reading), repairs, "{text}");
        assert_eq!(
            times(&reading),
            [("a", 0, 1000), ("b", 4000, 1000)],
            "{text}"
        );
    }
}

#[test]
fn texts_are_kept_as_far_as_they_can_be_read() {
    let reading = reading(
        b"[{\"ph\": \"X\", \"name\": \"C:\\Users\", \"ts\": 1, \"dur\": 1},
           {\"ph\": \"X\", \"name\": \"\xff\", \"ts\": 2, \"dur\": 1}]",
    );
    assert_eq!(told(&reading), [("bad_text", 2)]);
    assert_eq!(
        times(&reading),
        [("C:\\Users", 0, 1000), ("\u{fffd}", 1000, 1000)]
    );
}

#[test]
fn errors_say_what_and_where() {
    for (text, error) in [
        (
            "",
            "the file is empty, expected a Chrome trace or a memory snapshot",
        ),
        (
            " \n",
            "the file is empty, expected a Chrome trace or a memory snapshot",
        ),
        (
            "{\"traceEvents\": [{\"ph\": \"X\",\n \"na",
            "the JSON ends too early, at line 2 column 4: the file was cut off",
        ),
        (
            "{\"a\": [1, 2",
            "the JSON ends too early, at line 1 column 11: the file was cut off",
        ),
        (
            "[",
            "the JSON ends too early, at line 1 column 1: the file was cut off",
        ),
        (
            "{\"traceEvents\":\n [}",
            "not valid JSON at line 2 column 3: expected a value",
        ),
        (
            "{\"a\": 1}",
            "not a Chrome trace at line 1 column 8: expected the key \"traceEvents\" in the object",
        ),
        (
            "{\"traceEvents\": 1}",
            "not a Chrome trace at line 1 column 17: expected an array of events under \"traceEvents\"",
        ),
        (
            "\u{feff} 42",
            "not a Chrome trace at line 1 column 2: expected an object with \"traceEvents\" or an array of events",
        ),
        (
            "[1]",
            "not a Chrome trace at line 1 column 2: expected an event, which is an object with a phase \"ph\"",
        ),
        (
            "[\n{\"a\": 1}]",
            "not a Chrome trace at line 2 column 1: expected an event, which is an object with a phase \"ph\"",
        ),
        (
            "PK\u{3}\u{4}",
            "found a zip archive, expected a Chrome trace, plain or compressed once by gzip or zstd",
        ),
        (
            "{a: 1}",
            "not valid JSON at line 1 column 2: expected a string",
        ),
    ] {
        assert_eq!(error_of(text), error, "{text:?}");
    }
}

#[test]
fn a_trace_without_events_is_one() {
    for text in ["[]", "{\"traceEvents\": []}"] {
        let reading = reading(text.as_bytes());
        assert!(reading.repairs.is_empty() && reading.profile.events().is_empty());
    }
}

#[test]
fn a_key_of_events_that_leads_to_none_is_passed_by() {
    let error = error_of(r#"{"traceEvents"{"traceEvents"]"#);
    assert_eq!(error, "not valid JSON at line 1 column 29: expected `:`");
    let found = reading(br#"{"traceEvents"{"traceEvents": [{"ph": "X", "name": "a", "ts": 1}]}"#);
    assert_eq!(times(&found), [("a", 0, 0)]);
}

#[test]
fn memory_that_no_machine_has_is_counted_and_not_added_up() {
    let record = |bytes: i128, total: i128| {
        format!(
            r#"{{"ph": "i", "name": "[memory]", "ts": 1, "args": {{"Addr": 1, "Bytes": {bytes},
            "Total Allocated": {total}, "Device Type": 0, "Device Id": -1}}}}"#
        )
    };
    let absurd = [
        record(1 << 62, 0),
        record(1 << 62, 1 << 63),
        record(-(1 << 63), 0),
        record(64, 64),
        record(1 << 70, 1 << 70),
        record(-(1 << 70), 64),
    ];
    let reading = reading(format!("[{}]", absurd.join(", ")).as_bytes());
    assert_eq!(told(&reading), [("absurd_memory", 7)]);
    let kept = reading.profile.memory();
    let kept: Vec<_> = kept
        .iter()
        .map(|record| (record.bytes, record.total_allocated))
        .collect();
    assert_eq!(kept, [(0, 0), (0, 0), (0, 0), (64, 64), (0, 0), (0, 64)]);
}
