//! `mindprof slim`: the written part is a clean trace and records what was cut.

use std::fs;
use std::path::Path;

use crate::program::{Run, device_golden, golden, golden_of, run};

fn slim(trace: &Path, out: &Path, arguments: &[&str]) -> Run {
    let paths = [Path::new("slim"), trace, out];
    run(paths.into_iter().chain(arguments.iter().map(Path::new)))
}

fn info(trace: &Path) -> serde_json::Value {
    run([Path::new("info"), trace, Path::new("--json")]).json()
}

#[test]
fn every_kind_of_cut_gives_a_clean_trace_that_records_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("small.json.gz");
    let trace = device_golden("gpt-full");
    let before = info(&trace);
    for arguments in [
        &["--steps", "1"][..],
        &["--steps", "1..2"],
        &["--from", "1ms", "--until", "5ms"],
        &["--thread", "pt_autograd_0"],
        &["--thread", "399", "--min-duration", "20us"],
        &["--max-size", "20KB"],
        &["--without-memory"],
    ] {
        let report = slim(&trace, &out, &[arguments, &["--json"]].concat());
        assert_eq!(report.code, Some(0));
        let report = report.json();
        let cut = report["cut"].as_object().unwrap();
        let cut: u64 = cut.values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(
            report["kept"].as_u64().unwrap() + cut,
            6513,
            "{arguments:?}"
        );
        let verified = run([Path::new("verify"), &out]);
        assert_eq!(verified.code, Some(0), "{arguments:?}: {}", verified.stdout);
        let after = info(&out);
        assert_eq!(after["events"], report["kept"], "{arguments:?}");
        assert_eq!(after["memory_records"], report["memory_records_kept"]);
        assert_eq!(
            after["metadata"]["mindprof_slim"]["events"],
            before["events"]
        );
        assert_eq!(
            after["metadata"]["trace_id"],
            before["metadata"]["trace_id"]
        );
    }
}

#[test]
fn numbers_of_a_part_are_told_to_be_so() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("small.json.gz");
    slim(&golden("trace.json.gz"), &out, &["--max-size", "20KB"]).told();
    for command in ["table", "functions", "steps"] {
        let whole = run([Path::new(command), &golden("trace.json.gz")]);
        assert!(!whole.stderr.contains("part of the recording"), "{command}");
        let part = run([Path::new(command), &out]);
        let note = "small.json.gz: this is a part of the recording: ";
        assert!(part.stderr.contains(note), "{command}: {}", part.stderr);
    }
}

#[test]
fn a_step_is_kept_with_the_kernels_it_launched() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("step.json");
    let text = slim(&device_golden("gpt-full"), &out, &["--steps", "2"]).told();
    assert!(text.starts_with("kept "), "{text}");
    let found = info(&out);
    let numbers: Vec<_> = found["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["number"])
        .collect();
    assert_eq!(numbers, [2]);
    assert_eq!(found["categories"]["kernel"], 156);
}

#[test]
fn a_size_limit_is_kept_and_used() {
    let folder = tempfile::tempdir().unwrap();
    for (name, size) in [
        ("a.json", 100_000),
        ("a.json.gz", 20_000),
        ("b.json.gz", 5_000),
    ] {
        let out = folder.path().join(name);
        slim(
            &golden("trace.json.gz"),
            &out,
            &["--max-size", &size.to_string()],
        )
        .told();
        let bytes = fs::metadata(&out).unwrap().len();
        assert!(bytes <= size && bytes > size * 8 / 10, "{name} {bytes}");
    }
}

#[test]
fn a_second_cut_records_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1.json"), folder.path().join("2.json"));
    slim(
        &golden("trace.json.gz"),
        &first,
        &["--min-duration", "20us"],
    )
    .told();
    slim(&first, &second, &["--min-duration", "100us"]).told();
    let said = &info(&second)["metadata"]["mindprof_slim"];
    assert_eq!(said["earlier"]["kept"], said["events"]);
    assert!(said["kept"].as_u64() < said["events"].as_u64());
}

#[test]
fn a_selection_of_nothing_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.json");
    let trace = golden_of("mlp-full", "trace.json.gz");
    for (arguments, message) in [
        (
            &["--steps", "9"][..],
            "error: the trace has none of these steps\nhint: choose from steps 1 to 2\n".to_owned(),
        ),
        (
            &["--thread", "worker"],
            format!(
                "error: the trace has no thread `worker`\nhint: list threads with `mindprof info {}`\n",
                trace.display()
            ),
        ),
        (
            &["--from", "10s"],
            "error: the time window is empty\n\
             hint: choose --from and --until within the 30.613ms of the trace\n"
                .to_owned(),
        ),
    ] {
        let run = slim(&trace, &out, arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert_eq!(run.stderr, message);
    }
    let run = slim(&trace, &out, &["--max-size", "10"]);
    assert!(
        run.stderr
            .contains("bytes, more than the allowed 10\nhint: "),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(1));
    let run = slim(&trace, &out, &["--min-duration", "10"]);
    assert!(
        run.stderr.contains("expected a time with a unit"),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(2));
    assert!(!out.exists());
}

#[test]
fn the_extension_selects_the_trace_format() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("mlp-full", "trace.json.gz");
    let out = folder.path().join("small.pftrace");
    let size = ["--max-size", "5KB"];
    assert_eq!(slim(&trace, &out, &size).code, Some(0));
    let bytes = fs::read(&out).unwrap();
    assert!(bytes.len() <= 5000 && !bytes.starts_with(b"{"));
    let table = folder.path().join("small.parquet");
    let refused = slim(&trace, &table, &[]);
    assert_eq!((refused.code, table.exists()), (Some(2), false));
    let hint = "hint: write a trace first, then use `mindprof convert`\n";
    assert!(refused.stderr.ends_with(hint), "{}", refused.stderr);
}
