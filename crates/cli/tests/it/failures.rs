//! Failures: an error names the file and the reason, a hint the fix, and stdout stays empty.

use std::fs;

use crate::program::{golden_of, run, table};

#[test]
fn errors_name_the_file_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let early = "\nhint: record or copy the trace again: the writer may have been interrupted";
    let other = "\nhint: use a file written by export_chrome_trace";
    for (name, bytes, reason) in [
        ("missing.json", None, "no such file or directory".into()),
        (
            "empty.json",
            Some(""),
            format!("the file is empty, expected a Chrome trace or a memory snapshot{early}"),
        ),
        (
            "cut.json",
            Some("{\"traceEvents\": [\n{\"ph\": "),
            format!("the JSON ends too early, at line 2 column 7: the file was cut off{early}"),
        ),
        (
            "text.json",
            Some("hello"),
            format!("not valid JSON at line 1 column 1: expected value{other}"),
        ),
        (
            "other.json",
            Some("{\"rows\": []}"),
            format!(
                "not a Chrome trace at line 1 column 12: expected the key \"traceEvents\" in the object{other}"
            ),
        ),
    ] {
        let path = folder.path().join(name);
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).unwrap();
        }
        let run = table(&path, &[]);
        assert_eq!(run.stderr, format!("error: {}: {reason}\n", path.display()));
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{name}");
    }
}

#[test]
fn a_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = table(folder.path(), &[]);
    assert_eq!(
        run.stderr,
        format!(
            "error: {}: is a directory, expected a file\nhint: use a file in it\n",
            folder.path().display()
        )
    );
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
}

#[test]
fn the_hint_for_a_directory_names_a_trace_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let others = [
        "table.txt",
        "config.json",
        "line\nbreak.trace.json",
        "memory.html",
    ];
    for name in others.iter().chain(&["trace.json.gz"]) {
        fs::write(folder.path().join(name), "").unwrap();
    }
    fs::create_dir(folder.path().join("a.trace.json")).unwrap();
    let run = table(folder.path(), &[]);
    let trace = folder.path().join("trace.json.gz");
    let hint = format!("hint: use a file in it, such as {}\n", trace.display());
    assert!(run.stderr.ends_with(&hint), "{}", run.stderr);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
}

#[test]
fn an_unknown_sort_key_is_named() {
    let run = table("trace.json".as_ref(), &["--sort-by", "colour"]);
    let known = "expected one of self_cpu_time_total, cpu_time_total, cpu_time, ";
    assert!(
        run.stderr.contains("unknown sort key `colour`"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains(known), "{}", run.stderr);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
}

#[test]
fn every_command_names_a_file_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.json");
    let out = out.to_str().unwrap();
    for (arguments, code) in [
        (&["table", "missing.json"][..], 1),
        (&["stacks", "missing.json"], 1),
        (&["memory", "missing.json"], 1),
        (&["info", "missing.json"], 1),
        (&["verify", "missing.json"], 2),
        (&["convert", "missing.json", out], 1),
        (&["slim", "missing.json", out], 1),
        (&["diff", "missing.json", "missing.json"], 2),
    ] {
        let run = run(arguments);
        assert_eq!(
            run.stderr,
            "error: missing.json: no such file or directory\n"
        );
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(code), ""),
            "{arguments:?}"
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn usage_errors_are_refused() {
    for arguments in [
        &[][..],
        &["tables"],
        &["table"],
        &["convert", "a"],
        &["diff", "a"],
    ] {
        let run = run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(!run.stderr.is_empty());
    }
}

#[test]
fn an_unknown_option_gets_a_suggestion() {
    for (command, unknown, meant) in [
        ("table", "--group-by-input-shape", "--group-by"),
        ("table", "--group-by-stack-n", "--group-by"),
        ("table", "--top-level-events-only", "--top-level-only"),
        ("stacks", "--output", "--out"),
    ] {
        let run = run([command, "trace.json", unknown]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{unknown}");
        let tip = format!("a similar argument exists: '{meant}'");
        assert!(run.stderr.contains(&tip), "{}", run.stderr);
    }
}

#[test]
fn export_only_formats_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("mlp-full", "trace.json.gz");
    for name in [
        "a.pftrace",
        "a.pftrace.gz",
        "a.speedscope.json",
        "a.folded",
        "a.parquet",
        "a.arrow",
        "a.csv",
    ] {
        let path = folder.path().join(name);
        run(["convert".as_ref(), trace.as_os_str(), path.as_os_str()]).told();
        let run = run(["verify".as_ref(), path.as_os_str()]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{name}");
        let hint =
            "hint: this format cannot be read back: use the trace that the file was made from\n";
        assert!(run.stderr.ends_with(hint), "{}", run.stderr);
    }
}

#[test]
fn the_hint_for_a_size_limit_names_its_option() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let trace = trace.to_str().unwrap();
    for (command, code) in [("table", 1), ("info", 1), ("verify", 2)] {
        let refused = run([command, trace, "--max-bytes", "10KB"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(code), ""));
        assert!(refused.stderr.contains("more than 10000 bytes of text"));
        assert!(refused.stderr.contains("hint: ") && refused.stderr.contains("--max-bytes"));
        assert_eq!(run([command, trace, "--max-bytes", "100MB"]).code, Some(0));
    }
    assert_eq!(run(["table", trace, "--max-bytes", "much"]).code, Some(2));
}

#[test]
fn the_standalone_program_explains_how_to_get_run() {
    let output = run(["run", "--memory", "train.py", "--help"]);
    assert_eq!(output.code, Some(2));
    assert_eq!(
        output.stderr,
        "error: the standalone mindprof cannot run Python programs\nhint: install the Python package \
         and use its `mindprof run` or `python -m mindprof run`\n"
    );
}
