//! `mindprof stacks`.

use std::fs;
use std::path::Path;

use crate::program::{Run, device_golden, golden, golden_of, run};

fn stacks(trace: &Path, arguments: &[&str]) -> Run {
    run([Path::new("stacks"), trace]
        .into_iter()
        .chain(arguments.iter().map(Path::new)))
}

#[test]
fn lines_are_frames_and_a_weight() {
    let text = stacks(&golden_of("cnn-full", "trace.json.gz"), &[]).printed();
    assert!(text.lines().count() > 100);
    for line in text.lines() {
        let (frames, weight) = line.rsplit_once(' ').unwrap();
        assert!(weight.parse::<u64>().unwrap() > 0);
        assert!(frames.contains(".py") && !frames.contains(' '), "{line}");
    }
}

#[test]
fn scopes_stand_behind_their_callers() {
    let trace = golden_of("cnn-full", "trace.json.gz");
    let text = stacks(&trace, &["--scopes"]).printed();
    let is_path =
        |line: &str| line.contains(".py") && line.contains(";aten::conv2d;aten::convolution");
    assert!(text.lines().any(is_path), "{text}");
    let json = stacks(&trace, &["--json"]).json();
    let paths = json.as_array().unwrap();
    assert!(
        paths
            .iter()
            .all(|path| path["self_us"].as_f64().unwrap() > 0.0)
    );
}

#[test]
fn a_trace_without_stacks_shows_its_scopes_and_says_so() {
    let run = stacks(&golden("trace.json.gz"), &[]);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("has no stacks"), "{}", run.stderr);
    assert!(run.stdout.contains("ProfilerStep#1;"), "{}", run.stdout);
}

#[test]
fn devices_have_a_metric_of_their_own() {
    let trace = device_golden("gpt-full");
    let host = stacks(&trace, &["--scopes"]).printed();
    let device = stacks(&trace, &["--scopes", "--metric", "self_cuda_time_total"]).printed();
    assert!(!device.is_empty() && device != host);
    let run = stacks(&trace, &["--metric", "colour"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
}

#[test]
fn pictures_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("cnn-full", "trace.json.gz");
    let svg = folder.path().join("flames.svg");
    assert_eq!(
        stacks(&trace, &["--svg", svg.to_str().unwrap()]).printed(),
        ""
    );
    assert!(fs::read_to_string(&svg).unwrap().contains("</svg>"));
    let speedscope = folder.path().join("cnn.speedscope.json");
    assert_eq!(
        stacks(&trace, &["--speedscope", speedscope.to_str().unwrap()]).printed(),
        ""
    );
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&speedscope).unwrap()).unwrap();
    assert!(!json["profiles"].as_array().unwrap().is_empty());
}

#[test]
fn a_trace_without_events_has_nothing_to_show() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.json");
    fs::write(&path, "[]").unwrap();
    let run = stacks(&path, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""));
    let expected = format!("warning: {}: has no time to show\n", path.display());
    assert_eq!(run.stderr, expected);
}
