//! `mindprof memory`.

use std::fs;
use std::path::Path;

use crate::program::{Run, device_golden, golden, golden_of, run};

fn memory(trace: &Path, arguments: &[&str]) -> Run {
    run([Path::new("memory"), trace]
        .into_iter()
        .chain(arguments.iter().map(Path::new)))
}

#[test]
fn every_device_is_told() {
    let trace = device_golden("gpt-full");
    let text = memory(&trace, &[]).printed();
    let devices: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("device "))
        .collect();
    assert_eq!(devices.len(), 2);
    assert!(devices[0].starts_with("device cpu: peak "), "{text}");
    assert!(devices[1].starts_with("device cuda:0: peak "), "{text}");
    let one = memory(&trace, &["--device", "cuda:0"]).printed();
    assert!(text.ends_with(&one), "{one}");
}

#[test]
fn json_has_the_peak_and_who_held_it() {
    let json = memory(&golden_of("mlp-full", "trace.json.gz"), &["--json"]).json();
    let devices = json.as_array().unwrap();
    assert_eq!(devices.len(), 1);
    let peak = devices[0]["peak_bytes"].as_i64().unwrap();
    let holders = devices[0]["holders"].as_array().unwrap();
    let held: i64 = holders
        .iter()
        .map(|holder| holder["bytes"].as_i64().unwrap())
        .sum();
    assert!(peak > 0);
    assert_eq!(held, peak);
}

#[test]
fn timelines_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("mlp-full", "trace.json.gz");
    for (name, begin) in [
        ("m.html", "<!"),
        ("m.json", "[["),
        ("m.raw.json.gz", "\u{1f}"),
    ] {
        let out = folder.path().join(name);
        assert_eq!(
            memory(&trace, &["--out", out.to_str().unwrap()]).printed(),
            ""
        );
        let bytes = fs::read(&out).unwrap();
        assert!(bytes.starts_with(begin.as_bytes()), "{name}");
    }
}

#[test]
fn what_was_not_recorded_cannot_be_told() {
    let trace = golden("trace.json.gz");
    let run = memory(&trace, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    let path = trace.display();
    let expected =
        format!("error: {path}: no memory was recorded\nhint: record with profile_memory=True\n");
    assert_eq!(run.stderr, expected);
    let run = memory(
        &golden_of("mlp-full", "trace.json.gz"),
        &["--device", "cuda:0"],
    );
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(
        run.stderr.ends_with("hint: there is some of cpu\n"),
        "{}",
        run.stderr
    );
    let run = memory(
        &golden_of("mlp-full", "trace.json.gz"),
        &["--device", "gpu"],
    );
    assert_eq!(run.code, Some(2));
}

#[test]
fn a_name_that_says_no_timeline_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("memory.png");
    let found = memory(
        &device_golden("gpt-full"),
        &["--out", out.to_str().unwrap()],
    );
    assert_eq!((found.code, found.stdout.as_str()), (Some(1), ""));
    let expected = "the end of the name says no form of a timeline\nhint: end it in .html";
    assert!(found.stderr.contains(expected), "{}", found.stderr);
    assert!(!out.exists());
}
