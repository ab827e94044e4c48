//! `-` as the output: stdout has the data alone, so that it can be piped to another program.

use std::fs;
use std::process::Output;

use crate::program::{device_golden, golden, golden_of, mindprof, run};

fn piped(arguments: &[&str]) -> Output {
    mindprof().args(arguments).output().unwrap()
}

#[test]
fn every_command_that_writes_takes_a_dash_for_stdout() {
    let trace = device_golden("gpt-full");
    let trace = trace.to_str().unwrap();
    for (arguments, begin) in [
        (&["convert", trace, "-"][..], &b"{"[..]),
        (&["convert", trace, "-", "--to", "json.gz"], &[0x1f, 0x8b]),
        (&["convert", trace, "-", "--to", "json.zst"], &[0x28, 0xb5]),
        (&["convert", trace, "-", "--to", "arrow"], b"ARROW1"),
        (&["convert", trace, "-", "--to", "parquet"], b"PAR1"),
        (&["convert", trace, "-", "--to", "csv"], b"key,count,"),
        (&["slim", trace, "-", "--steps", "1"], b"{"),
        (&["slim", trace, "-", "--to", "pftrace"], &[0x0a]),
        (&["memory", trace, "--out", "-"], b"[["),
        (&["memory", trace, "--out", "-", "--to", "html"], b"<!"),
        (&["stacks", trace, "--out", "-"], b"record.py"),
        (&["stacks", trace, "--out", "-", "--to", "svg"], b"<?xml"),
        (
            &["stacks", trace, "--out", "-", "--to", "speedscope"],
            b"{\"$schema\"",
        ),
    ] {
        let output = piped(arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?} {told}");
        assert!(output.stdout.starts_with(begin), "{arguments:?}");
        assert!(told.contains("wrote stdout ("), "{arguments:?} {told}");
        assert!(!fs::exists("-").unwrap());
    }
}

#[test]
fn a_piped_trace_can_be_read_again() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let expected = run(["info".as_ref(), trace.as_os_str()]).stdout;
    for form in ["json", "json.gz", "json.zst"] {
        let packed = piped(&["convert", trace.to_str().unwrap(), "-", "--to", form]).stdout;
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        fs::write(&copy, packed).unwrap();
        let stdin = fs::File::open(&copy).unwrap();
        let output = mindprof()
            .args(["info", "-"])
            .stdin(stdin)
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            expected,
            "{form}"
        );
    }
}

#[test]
fn stdout_does_not_take_output_and_json() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    for command in ["convert", "slim"] {
        let run = run([command, trace.to_str().unwrap(), "-", "--json"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
        assert!(run.stderr.contains("\nhint: "), "{}", run.stderr);
    }
}

#[test]
fn an_output_that_would_be_empty_falls_back_or_fails() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden("trace.json.gz");
    let out = folder.path().join("a.folded");
    let told = run(["convert".as_ref(), trace.as_os_str(), out.as_os_str()]).told();
    assert!(told.contains("scopes are shown instead\nwrote "), "{told}");
    let text = fs::read_to_string(&out).unwrap();
    assert!(text.contains("ProfilerStep#1;"), "{text}");
    let none = folder.path().join("none.json");
    fs::write(&none, "[]").unwrap();
    for name in ["b.folded", "b.speedscope.json", "b.svg"] {
        let out = folder.path().join(name);
        let (none, path) = (none.to_str().unwrap(), out.to_str().unwrap());
        let run = if name.ends_with("svg") {
            run(["stacks", none, "--out", path])
        } else {
            run(["convert", none, path])
        };
        assert_eq!((run.code, out.exists()), (Some(1), false), "{name}");
        assert!(
            run.stderr.contains("no events with self time"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn tables_of_events_report_their_number_of_rows() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("mlp-full", "trace.json.gz");
    let mut counts = Vec::new();
    for name in ["a.parquet", "a.arrow", "a.csv"] {
        let out = folder.path().join(name);
        let (trace, out) = (trace.to_str().unwrap(), out.to_str().unwrap());
        let json = run(["convert", trace, out, "--json"]).json();
        assert_eq!(json["unit"], "row");
        counts.push(json["written"].as_u64().unwrap());
    }
    let text = fs::read_to_string(folder.path().join("a.csv")).unwrap();
    // No name of the trace has a line break.
    let lines = text.lines().count() as u64 - 1;
    assert_eq!(counts, [lines; 3]);
}

/// torch compresses at the highest level of gzip.
#[test]
fn a_rewritten_trace_is_not_larger() {
    let folder = tempfile::tempdir().unwrap();
    for (name, trace) in [
        ("gpt-full", device_golden("gpt-full")),
        ("mlp-plain", device_golden("mlp-plain")),
        ("threads-full", device_golden("threads-full")),
        ("cnn-full", golden_of("cnn-full", "trace.json.gz")),
        ("gpt-plain", golden_of("gpt-plain", "trace.json.gz")),
        ("mlp-full", golden_of("mlp-full", "trace.json.gz")),
    ] {
        let out = folder.path().join("again.json.gz");
        run(["convert".as_ref(), trace.as_os_str(), out.as_os_str()]).told();
        let bytes = |path| fs::metadata(path).unwrap().len();
        let (before, after) = (bytes(&trace), bytes(&out));
        assert!(after <= before, "{name}: {before} became {after}");
    }
}

#[test]
fn usage_errors_have_their_own_code() {
    for arguments in [
        &["convert", "a.json", "b.xyz"][..],
        &["slim", "a.json", "b.xyz"],
        &["slim", "a.json", "b.parquet"],
        &["memory", "a.json", "--out", "b.png"],
        &["stacks", "a.json", "--out", "b.png"],
        &["convert", "a.json", "--out", "c.json"],
        &["man", "tables"],
        &["table", "a.json", "--columns", "colour"],
    ] {
        let run = run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(!run.stderr.is_empty(), "{arguments:?}");
    }
}
