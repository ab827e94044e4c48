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
    assert!(text.lines().count() > 10);
    for line in text.lines() {
        let (frames, weight) = line.rsplit_once(' ').unwrap();
        assert!(weight.parse::<u64>().unwrap() > 0);
        assert!(frames.contains(".py") && !frames.contains(' '), "{line}");
    }
}

#[test]
fn scopes_follow_their_callers() {
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
fn a_trace_without_stacks_shows_scopes_with_a_warning() {
    let run = stacks(&golden("trace.json.gz"), &[]);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("has no stacks"), "{}", run.stderr);
    assert!(run.stdout.contains("ProfilerStep#1;"), "{}", run.stdout);
}

#[test]
fn device_time_is_a_metric() {
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
    let told = stacks(&trace, &["--out", svg.to_str().unwrap()]).told();
    assert!(told.ends_with("KB, a flame graph)\n"), "{told}");
    assert!(fs::read_to_string(&svg).unwrap().contains("</svg>"));
    let speedscope = folder.path().join("cnn.speedscope.json");
    let told = stacks(&trace, &["--out", speedscope.to_str().unwrap()]).told();
    assert!(told.ends_with(", 1601 events)\n"), "{told}");
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
    let expected = format!("warning: {}: no self time to show\n", path.display());
    assert_eq!(run.stderr, expected);
}

#[test]
fn the_extension_selects_the_format_of_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("cnn-full", "trace.json.gz");
    for (name, begin) in [
        ("a.svg", "<?xml"),
        ("a.SPEEDSCOPE.JSON", "{\"$schema\""),
        ("a.folded", "record.py"),
        ("a.stacks.txt", "record.py"),
    ] {
        let out = folder.path().join(name);
        let told = stacks(&trace, &["--out", out.to_str().unwrap()]).told();
        assert!(told.starts_with("wrote "), "{told}");
        let text = fs::read_to_string(&out).unwrap();
        assert!(text.starts_with(begin), "{name} {}", &text[..20]);
    }
    let wrong = folder.path().join("a.png");
    let run = stacks(&trace, &["--out", wrong.to_str().unwrap()]);
    assert_eq!((run.code, wrong.exists()), (Some(2), false));
}

#[test]
fn lines_of_one_stack_are_summed() {
    let trace = golden_of("cnn-full", "trace.json.gz");
    let text = stacks(&trace, &[]).printed();
    let mut paths: Vec<&str> = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    let count = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), count);
    let spent: u64 = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum();
    let own = fs::read(golden_of("cnn-full", "stacks.txt.gz")).unwrap();
    let mut torchs = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&own[..]), &mut torchs)
        .unwrap();
    let torchs: u64 = torchs
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum();
    // torch truncates each event to whole microseconds; mindprof truncates the sum.
    assert!(
        torchs <= spent && spent < torchs + torchs / 5,
        "{torchs} {spent}"
    );
}
