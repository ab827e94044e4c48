//! `mindprof convert`.

use std::fs;
use std::path::Path;

use crate::program::{Run, device_golden, golden_of, mindprof, run, table};

fn convert(trace: &Path, out: &Path, arguments: &[&str]) -> Run {
    let paths = [Path::new("convert"), trace, out];
    run(paths.into_iter().chain(arguments.iter().map(Path::new)))
}

#[test]
fn chrome_traces_are_equal_plain_and_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("cnn-full", "trace.json.gz");
    let expected = table(&trace, &["--group-by", "shape"]).stdout;
    for name in ["plain.json", "packed.json.gz", "PACKED.JSON.ZST"] {
        let out = folder.path().join(name);
        let text = convert(&trace, &out, &[]).told();
        let kilobytes = fs::metadata(&out).unwrap().len() as f64 / 1024.0;
        let size = match kilobytes {
            1024.0.. => format!("{:.2} MB", kilobytes / 1024.0),
            _ => format!("{kilobytes:.2} KB"),
        };
        let says = format!("wrote {} ({size}, 1601 events)\n", out.display());
        assert_eq!(text, says);
        assert_eq!(table(&out, &["--group-by", "shape"]).stdout, expected);
    }
}

#[test]
fn the_extension_selects_the_format() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("mlp-full", "trace.json.gz");
    for (name, format) in [
        ("a.json", "json"),
        ("a.json.gz", "json"),
        ("a.pftrace", "pftrace"),
        ("a.pftrace.gz", "pftrace"),
        ("a.speedscope.json", "speedscope"),
        ("a.folded", "folded"),
        ("a.parquet", "parquet"),
        ("a.arrow", "arrow"),
        ("a.csv", "csv"),
        ("a.csv.zst", "csv"),
    ] {
        let out = folder.path().join(name);
        let run = convert(&trace, &out, &["--json"]);
        assert_eq!(run.code, Some(0), "{name}");
        assert!(run.stderr.contains("wrote "), "{name} {}", run.stderr);
        let json = run.json();
        assert_eq!(json["format"], format, "{name}");
        assert_eq!(json["bytes"], fs::metadata(&out).unwrap().len(), "{name}");
        let bytes = fs::read(&out).unwrap();
        for (magic, end) in [(&[0x1f, 0x8b][..], "gz"), (&[0x28, 0xb5, 0x2f], "zst")] {
            let is_packed = bytes.starts_with(magic);
            assert_eq!(is_packed, out.extension() == Some(end.as_ref()), "{name}");
        }
    }
}

#[test]
fn a_format_can_be_selected_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("mlp-full", "trace.json.gz");
    let out = folder.path().join("stacks.txt");
    convert(&trace, &out, &["--to", "folded"]).told();
    assert!(fs::read_to_string(&out).unwrap().contains(".py"));
    let run = convert(&trace, &out, &["--to", "json.gz"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    let hint = format!("hint: write to {}.gz\n", out.display());
    assert!(run.stderr.ends_with(&hint), "{}", run.stderr);
}

#[test]
fn nothing_is_written_on_failure() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("mlp-full", "trace.json.gz");
    let unknown = convert(&trace, &folder.path().join("trace.xyz"), &[]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));
    assert!(
        unknown.stderr.ends_with("or select a format with --to\n"),
        "{}",
        unknown.stderr
    );
    let missing = convert(
        Path::new("missing.json"),
        &folder.path().join("a.json"),
        &[],
    );
    assert_eq!(missing.code, Some(1));
    assert_eq!(
        missing.stderr,
        "error: missing.json: no such file or directory\n"
    );
    let into_a_file = folder.path().join("file");
    fs::write(&into_a_file, "mine").unwrap();
    let refused = convert(&trace, &into_a_file.join("a.json"), &[]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(refused.stderr.starts_with("error: "), "{}", refused.stderr);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(&into_a_file).unwrap(), "mine");
}

#[cfg(unix)]
#[test]
fn a_new_file_follows_the_umask() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("mlp-full", "trace.json.gz");
    for (umask, mode) in [("077", 0o600), ("022", 0o644)] {
        let out = folder.path().join(format!("{umask}.json"));
        let status = std::process::Command::new("sh")
            .args(["-c", "umask $0; \"$1\" convert \"$2\" \"$3\" >&2", umask])
            .arg(env!("CARGO_BIN_EXE_mindprof"))
            .args([&trace, &out])
            .status()
            .unwrap();
        assert!(status.success());
        let found = fs::metadata(&out).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{found:o}");
    }
}

#[cfg(unix)]
#[test]
fn a_trace_is_not_written_over_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, link) = (
        folder.path().join("a.json.gz"),
        folder.path().join("b.json.gz"),
    );
    fs::copy(golden_of("mlp-full", "trace.json.gz"), &trace).unwrap();
    std::os::unix::fs::symlink(&trace, &link).unwrap();
    let before = fs::read(&trace).unwrap();
    for command in ["convert", "slim"] {
        for out in [&trace, &link] {
            let run = run([command.as_ref(), trace.as_os_str(), out.as_os_str()]);
            assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
            assert!(
                run.stderr
                    .contains("input and output are the same file\nhint: "),
                "{}",
                run.stderr
            );
            assert_eq!(fs::read(&trace).unwrap(), before);
        }
    }
}

#[test]
fn a_format_can_be_selected_by_its_extension() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let converted = |to: &str| {
        let output = mindprof()
            .args([Path::new("convert"), &trace, Path::new("-")])
            .args(["--to", to])
            .output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0), "{to}");
        output.stdout
    };
    assert_eq!(converted("speedscope.json"), converted("speedscope"));
    assert_eq!(converted("stacks.txt"), converted("folded"));
}

#[test]
fn memory_records_without_a_row_are_reported() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let folder = tempfile::tempdir().unwrap();
    for ending in ["parquet", "arrow", "csv"] {
        let out = folder.path().join(format!("a.{ending}"));
        let told = run([Path::new("convert"), &trace, &out]).told();
        let note = format!(
            "{ending} has no row for 65 memory records: the row of the enclosing event counts the bytes\n"
        );
        assert!(told.contains(&note), "{told}");
    }
}

#[test]
fn events_without_a_row_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let event = |name: &str, begin: u32, duration: u32| {
        format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": 1, "ts": {begin}, "dur": {duration}}}"#
        )
    };
    let events = [
        event("twice", 0, 100),
        event("twice", 10, 80),
        event("inside", 20, 10),
        event("aten::is_leaf", 200, 10),
    ];
    fs::write(
        &trace,
        format!(r#"{{"traceEvents": [{}]}}"#, events.join(",")),
    )
    .unwrap();
    for ending in ["parquet", "arrow", "csv"] {
        let out = folder.path().join(format!("a.{ending}"));
        let told = run([Path::new("convert"), &trace, &out]).told();
        for note in [
            "{} has no row for 1 event: an only child with the name of its parent is merged into it\n",
            "{} has no row for 1 event: events of the profiler itself are not shown\n",
        ] {
            assert!(told.contains(&note.replace("{}", ending)), "{told}");
        }
    }
}

#[test]
fn device_events_have_no_stack_and_are_reported() {
    let trace = device_golden("gpt-full");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.folded");
    let told = run([Path::new("convert"), &trace, &out]).told();
    assert!(
        told.contains(": folded cannot hold 320 device events, "),
        "{told}"
    );
    assert!(told.contains(" memory records\n"), "{told}");
}
