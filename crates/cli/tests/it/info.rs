//! `mindprof info`.

use std::fs;
use std::path::Path;

use crate::program::{device_golden, golden_of, run};

#[test]
fn a_trace_without_devices_is_summarized() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let text = run([Path::new("info"), &trace]).printed();
    let expected = r#"Span: 30.613ms
Events: 801
  cpu_op: 244
  user_annotation: 10
  python_function: 547
Memory records: 65

Threads: 1
  Process  Thread  Name    Events      Busy
  -------  ------  ------  ------  --------
     6095    6095  python     801  30.485ms

Steps: 2
  Step      Start  Duration
  ----  ---------  --------
     1  499.891us  12.584ms
     2   13.189ms  17.341ms

Metadata:
  deviceProperties: []
  trace_id: "671C9D7515CD4060A2B24BDFCA24371A"
  with_stack: 1
  profile_memory: 1
  record_shapes: 1
  with_modules: 1
  with_flops: 1
  host_name: "vm"

Events lost: 0
Repairs: 0
"#;
    assert_eq!(text, expected);
}

#[test]
fn a_trace_with_a_device_is_summarized_as_json() {
    let trace = device_golden("gpt-full");
    let json = run([Path::new("info"), &trace, Path::new("--json")]).json();
    assert_eq!(json["events"], 6513);
    assert_eq!(json["categories"]["kernel"], 312);
    assert_eq!(json["categories"]["cuda_runtime"], 339);
    assert_eq!(json["categories"]["cuda_driver"], 40);
    assert_eq!(json["categories"]["cpu_op"], 2668);
    assert_eq!(json["memory_records"], 780);
    let stream = &json["streams"][0];
    assert_eq!(
        (&stream["device"], &stream["thread"]),
        (&"cuda".into(), &7.into())
    );
    assert_eq!(json["threads"][0]["name"], "python3");
    assert_eq!(json["threads"][1]["name"], "pt_autograd_0");
    assert_eq!(json["steps"][1]["number"], 2);
    assert_eq!(
        json["metadata"]["deviceProperties"][0]["name"],
        "NVIDIA H200"
    );
    assert_eq!(json["lost"]["total"], 0);
    assert_eq!(json["repairs"], serde_json::json!({}));
}

/// A user's range on a device lasts 100 us and contains 15 us of device work.
#[test]
fn ranges_are_not_device_work_and_negative_ids_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device.json");
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": -5, "ts": 0, "dur": 200},
        {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 1, "tid": -5, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": -5, "ts": 3, "dur": 1},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "step", "pid": 0, "tid": 7, "ts": 0, "dur": 100,
         "args": {"device": 0, "stream": 7}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 50, "dur": 10,
         "args": {"device": 0, "stream": 7}},
        {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 70, "dur": 5,
         "args": {"device": 0, "stream": 7}}
    ]}"#;
    fs::write(&path, text).unwrap();
    let json = run([Path::new("info"), &path, Path::new("--json")]).json();
    assert_eq!(json["streams"][0]["busy_us"], 15.0);
    assert_eq!(json["threads"][0]["thread"], -5);
    for name in ["cuda_driver", "cuda_runtime", "kernel", "gpu_memset"] {
        assert_eq!(json["categories"][name], 1, "{name}");
    }
    let printed = run([Path::new("info"), &path]).printed();
    assert!(printed.contains("\n        1      -5 "), "{printed}");
}

#[test]
fn unknown_records_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counter.json");
    let text = r#"[{"ph": "C", "name": "c", "pid": 1, "ts": 1, "args": {"value": 3}},
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]"#;
    fs::write(&path, text).unwrap();
    let printed = run([Path::new("info"), &path]).printed();
    assert!(
        printed.ends_with("\nKept as they are: 1 counters\n"),
        "{printed}"
    );
    let json = run([Path::new("info"), &path, Path::new("--json")]).json();
    assert_eq!(json["set_aside"]["C"], 1);
}

/// The trace has streams by name and flow events of their own category, as in Kineto's first year,
/// and a synchronization event as in today's.
#[test]
fn old_names_of_streams_flows_and_categories_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.json");
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "Operator", "name": "a", "pid": 1, "tid": "1", "ts": 0, "dur": 100},
        {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": "1", "ts": 1, "dur": 1,
         "args": {"correlation": 9}},
        {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 9, "dur": 5,
         "args": {"correlation": 9, "device": 0, "stream": 7}},
        {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": "stream 20", "ts": 30, "dur": 5},
        {"ph": "s", "id": 9, "pid": 1, "tid": 1, "ts": 1, "cat": "async", "name": "launch"},
        {"ph": "f", "id": 9, "pid": 0, "tid": "stream 7", "ts": 9, "cat": "async", "name": "launch", "bp": "e"},
        {"ph": "s", "id": 5, "pid": 0, "tid": "stream 7", "ts": 1, "cat": "mine", "name": "arrow"},
        {"ph": "f", "id": 5, "pid": 1, "tid": 1, "ts": 2, "cat": "mine", "name": "arrow"}
    ]}"#;
    fs::write(&path, text).unwrap();
    let out = folder.path().join("again.json");
    run(["convert".as_ref(), path.as_os_str(), out.as_os_str()]).told();
    for path in [&path, &out] {
        let json = run([Path::new("info"), path, Path::new("--json")]).json();
        assert_eq!(json["categories"]["kernel"], 1);
        assert_eq!(json["categories"]["cuda_sync"], 1);
        assert_eq!(json["threads"].as_array().unwrap().len(), 1);
        let streams = json["streams"].as_array().unwrap();
        let streams: Vec<_> = streams.iter().map(|stream| &stream["thread"]).collect();
        assert_eq!(streams, [7], "nothing ran on the one that was waited for");
        let text = run([Path::new("info"), path]).printed();
        assert!(text.ends_with("\nKept as they are: 1 flows\n"), "{text}");
    }
}

/// ```text
/// 0         10        20 us
/// |---------|
///      |-----|               ends a microsecond after its parent
/// ```
#[test]
fn a_shortened_event_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.json");
    let text = r#"[{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 10},
        {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "ts": 5, "dur": 6}]"#;
    fs::write(&path, text).unwrap();
    let info = run([Path::new("info"), &path]).printed();
    let sentence =
        "1 event ends a microsecond after the event it started in and was shortened to it";
    assert!(
        info.contains(&format!("Repairs: 1\n  {sentence}\n")),
        "{info}"
    );
    let verified = run([Path::new("verify"), &path]);
    assert_eq!(verified.code, Some(1));
    assert!(verified.stdout.contains(sentence), "{}", verified.stdout);
    let json = run([Path::new("verify"), &path, Path::new("--json")]).json();
    assert_eq!(json["repairs"], serde_json::json!({"shortened": 1}));
}
