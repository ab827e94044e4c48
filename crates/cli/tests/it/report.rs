//! `mindprof report`.

use std::fs;
use std::path::Path;

use crate::program::{device_golden, golden_of, mindprof, run, write_trace};

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
    assert!(page.contains("grew from 10.0 us to 20.0 us (+100.0 %)"));
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
