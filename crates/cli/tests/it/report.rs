//! `mindprof report`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Run, device_golden, golden_of, mindprof, run, write_trace};

#[test]
fn a_report_is_one_page_named_after_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = device_golden("gpt-full");
    let done = mindprof()
        .current_dir(folder.path())
        .args([Path::new("report"), &trace])
        .output()
        .unwrap();
    assert!(done.status.success());
    assert!(done.stdout.is_empty(), "the page is a file");
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(told.starts_with("wrote gpt-full.html ("), "{told}");
    let page = fs::read_to_string(folder.path().join("gpt-full.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"));
    for pane in [
        "overview",
        "step",
        "operators",
        "flames",
        "memory",
        "kernels",
        "about",
    ] {
        assert!(page.contains(&format!("<section id=\"{pane}\"")), "{pane}");
    }
}

#[test]
fn a_comparison_has_a_pane_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after, out] =
        ["before.json", "after.json", "out.html"].map(|name| folder.path().join(name));
    write_trace(&before, &[("aten::mm", 10)]);
    write_trace(&after, &[("aten::mm", 20)]);
    let arguments = [Path::new("report"), &after, Path::new("--compare"), &before];
    run(arguments.into_iter().chain([Path::new("--out"), &out])).told();
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.contains("<h1>Compared with before.json</h1>"));
    assert!(page.contains("grew from 10.0\u{a0}us to 20.0\u{a0}us (+100.0\u{a0}%)"));
}

#[test]
fn both_traces_of_a_comparison_have_the_arguments_of_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let [trace, out] = ["trace.json", "page.html"].map(|name| folder.path().join(name));
    let steps = (0..3).map(|step| {
        let at = step * 1000;
        format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{step}","pid":1,"tid":1,"ts":{at},"dur":900}},
            {{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":20,"args":{{"correlation":{}}}}},
            {{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{},"dur":800,
              "args":{{"device":0,"stream":7,"correlation":{},"blocks per SM":0.1}}}}"#,
            at + 20,
            step + 1,
            at + 50,
            step + 1
        )
    });
    let events = steps.collect::<Vec<_>>().join(",");
    fs::write(&trace, format!(r#"{{"traceEvents":[{events}]}}"#)).unwrap();
    let arguments = [Path::new("report"), &trace, Path::new("--compare"), &trace];
    run(arguments.into_iter().chain([Path::new("--out"), &out])).told();
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.contains("[underfilled-device]"));
    assert!(!page.contains("cannot tell before"));
}

#[test]
fn the_trace_for_perfetto_lies_beside_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let [trace, out] = ["trace.json", "page.html"].map(|name| folder.path().join(name));
    write_trace(&trace, &[("aten::mm", 10)]);
    let arguments = [Path::new("report"), &trace, Path::new("--out"), &out];
    let told = run(arguments.into_iter().chain([Path::new("--perfetto")])).told();
    assert!(
        told.contains("page.pftrace: open it at ui.perfetto.dev"),
        "{told}"
    );
    assert!(folder.path().join("page.pftrace").metadata().unwrap().len() > 0);
}

#[test]
fn the_trace_itself_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    write_trace(&trace, &[("aten::mm", 10)]);
    let refused = run([Path::new("report"), &trace, Path::new("--out"), &trace]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused
            .stderr
            .contains("input and output are the same file")
    );
}

#[test]
fn a_page_goes_to_stdout_and_is_the_same_for_the_same_trace() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let arguments = [
        Path::new("report"),
        &trace,
        Path::new("--out"),
        Path::new("-"),
    ];
    let first = run(arguments).stdout;
    assert!(first.ends_with("</html>\n"));
    assert!(
        run(arguments).stdout == first,
        "the page depends on more than the trace"
    );
}

/// Writes a trace whose operators are called from lines of files.
fn write_calls(path: &Path, files: &[&str]) {
    let calls = files.iter().enumerate();
    let calls = calls.flat_map(|(number, file)| {
        let call = format!("{file}(2): step");
        let start = 100 * number;
        let event = |cat: &str, name: &str, start, duration| {
            serde_json::json!({
                "ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 2, "ts": start, "dur": duration,
            })
        };
        [
            event("python_function", &call, start, 90),
            event("cpu_op", "aten::mm", start + 10, 50),
        ]
    });
    let trace = serde_json::json!({ "traceEvents": calls.collect::<Vec<_>>() });
    fs::write(path, trace.to_string()).unwrap();
}

/// Runs `mindprof report trace.json --source` in a folder, and returns what it said.
fn report_sources(folder: &Path) -> String {
    let mut command = mindprof();
    command
        .current_dir(folder)
        .args(["report", "trace.json", "--source"]);
    Run::from(command.output().unwrap()).told()
}

#[test]
fn source_lines_come_from_python_files_of_the_current_folder_only() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("project");
    fs::create_dir(&folder).unwrap();
    fs::write(above.path().join("other.py"), "a\nb\n").unwrap();
    for name in ["train.py", "passwords.txt", ".env"] {
        fs::write(folder.join(name), "first\nsecond\n").unwrap();
    }
    fs::write(folder.join("large.py"), vec![b'\n'; (4 << 20) + 1]).unwrap();
    #[cfg(unix)]
    for (target, link) in [
        ("../other.py", "outside.py"),
        ("passwords.txt", "disguised.py"),
    ] {
        std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
    }
    let files = [
        "train.py",
        "passwords.txt",
        ".env",
        "large.py",
        "outside.py",
        "disguised.py",
        "../other.py",
        "/etc/passwd",
    ];
    write_calls(&folder.join("trace.json"), &files);
    let told = report_sources(&folder);
    assert!(told.starts_with("shows lines of train.py\n"), "{told}");
    assert_eq!(told.matches("shows lines").count(), 1, "{told}");
    assert!(told.contains("left out 3 source files outside of the current folder"));
    assert!(told.contains("left out 4 source files that are no Python files of at most 4 MB"));
}

/// Runs `mindprof report trace.json` with further arguments, and returns the message of the error.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let mut command = mindprof();
    command
        .current_dir(folder)
        .args(["report", "trace.json"])
        .args(arguments);
    let done = Run::from(command.output().unwrap());
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    done.stderr
}

#[test]
fn a_report_replaces_neither_its_inputs_nor_files_that_are_no_reports() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["trace.json", "before.json", "trace.pftrace", "notes.html"];
    let files: [PathBuf; 4] = files.map(|name| folder.path().join(name));
    for file in &files {
        write_trace(file, &[("aten::mm", 10)]);
    }
    let is_same = "input and output are the same file";
    for (arguments, reason) in [
        (
            &["--compare", "before.json", "--out", "before.json"][..],
            is_same,
        ),
        (&["--compare", "trace.pftrace", "--perfetto"], is_same),
        (&["--perfetto"], "exists, without a page beside it"),
        (&["--out", "notes.html"], "is not a page of mindprof"),
        (&["--out", "before.json"], "is not a page of mindprof"),
    ] {
        let message = refused(folder.path(), arguments);
        assert!(message.contains(reason), "{arguments:?}: {message}");
    }
    let contents = files.map(|file| fs::read(file).unwrap());
    assert!(contents.iter().all(|one| *one == contents[0]));
    assert!(
        !folder.path().join("trace.html").exists(),
        "before any work"
    );
}

#[test]
fn a_second_report_replaces_the_first() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(&folder.path().join("trace.json"), &[("aten::mm", 10)]);
    fs::write(folder.path().join("empty.html"), "").unwrap();
    for out in ["page.html", "page.html.gz", "empty.html"] {
        for _ in 0..2 {
            let mut command = mindprof();
            command.current_dir(folder.path());
            command.args(["report", "trace.json", "--perfetto", "--out", out]);
            Run::from(command.output().unwrap()).told();
        }
    }
}
