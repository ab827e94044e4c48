//! `mindprof verify`: 0 clean, 1 repaired, 2 unreadable.

use std::fs;
use std::path::Path;

use crate::program::{Run, device_golden, golden_of, run};

fn verify(trace: &Path, arguments: &[&str]) -> Run {
    run([Path::new("verify"), trace]
        .into_iter()
        .chain(arguments.iter().map(Path::new)))
}

/// Writes a trace with one intact event and one whose timestamp is not a number.
fn damaged(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("damaged.json");
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2},
        {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "ts": "soon", "dur": 2}
    ]}"#;
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn recorded_traces_are_clean() {
    let traces = ["gpt-plain", "cnn-full", "mlp-full"].map(|name| golden_of(name, "trace.json.gz"));
    let of_devices = ["gpt-full", "mlp-plain", "threads-full"].map(device_golden);
    for trace in traces.iter().chain(&of_devices) {
        let text = verify(trace, &[]).printed();
        let expected = format!("{}: no faults, ", trace.display());
        assert!(text.starts_with(&expected), "{text}");
    }
}

#[test]
fn repairs_are_reported_by_kind_and_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = damaged(folder.path());
    let run = verify(&path, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    let expected = format!("{}: 1 fault repaired, 1 event\n  1 ", path.display());
    assert!(run.stdout.starts_with(&expected), "{}", run.stdout);
    let run = verify(&path, &["--json"]);
    assert_eq!(run.code, Some(1));
    let json = run.json();
    assert_eq!(
        (&json["readable"], &json["clean"]),
        (&true.into(), &false.into())
    );
    let repairs = json["repairs"].as_object().unwrap();
    assert_eq!(
        repairs
            .values()
            .map(|count| count.as_u64().unwrap())
            .sum::<u64>(),
        1
    );
}

#[test]
fn other_commands_warn_of_repairs_and_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = damaged(folder.path());
    for command in ["table", "stacks"] {
        let run = run([Path::new(command), &path]);
        assert_eq!(run.code, Some(0));
        let warning = format!("warning: {}: 1 ", path.display());
        assert!(run.stderr.starts_with(&warning), "{}", run.stderr);
    }
}

#[test]
fn a_file_that_is_not_a_trace_is_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.json");
    fs::write(&path, "hello").unwrap();
    let run = verify(&path, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(
        run.stderr
            .starts_with(&format!("error: {}: ", path.display())),
        "{}",
        run.stderr
    );
    let run = verify(&path, &["--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), ""));
    let json = run.json();
    assert_eq!(json["readable"], false);
    assert!(json["error"].as_str().unwrap().contains("text.json"));
}
