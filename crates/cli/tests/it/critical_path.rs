//! `mindprof critical-path`.

use std::path::Path;

use serde_json::Value;

use crate::program::{device_golden, golden_of, run, write_trace};

#[test]
fn the_path_of_a_trace_with_a_device_is_printed() {
    let trace = device_golden("gpt-full");
    let text = run([
        Path::new("critical-path"),
        &trace,
        Path::new("--width"),
        Path::new("80"),
    ])
    .printed();
    assert!(text.starts_with("Critical path of 2 steps: "), "{text}");
    assert!(text.contains("bound by the CPU"), "{text}");
    assert!(text.contains("the profiler's own cost"), "{text}");
    assert!(text.contains("Operator, with its kernels"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn narrower_than_60_columns_is_60_columns() {
    for trace in [
        device_golden("gpt-full"),
        device_golden("threads-full"),
        golden_of("mlp-full", "trace.json.gz"),
    ] {
        let trace = trace.to_str().unwrap();
        let text = run(["critical-path", trace, "--width", "20"]).printed();
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
        assert_eq!(
            text,
            run(["critical-path", trace, "--width", "60"]).printed()
        );
    }
}

#[test]
fn the_kinds_sum_to_the_path_in_json() {
    let traces = [
        golden_of("mlp-full", "trace.json.gz"),
        device_golden("gpt-full"),
    ];
    for trace in traces {
        for option in [None, Some("--recorded")] {
            let arguments = [Path::new("critical-path"), &trace, Path::new("--json")];
            let answer = run(arguments.into_iter().chain(option.map(Path::new))).json();
            let split = answer["split"].as_object().unwrap().values();
            let sum: f64 = split.map(|time| time.as_f64().unwrap()).sum();
            let key = option.map_or("unrecorded_us", |_| "recorded_us");
            let step = answer[key].as_f64().unwrap();
            assert!((sum - step).abs() < 0.02 * step, "{sum} {step}");
            for list in ["operators", "functions", "modules", "kernels"] {
                for row in answer[list].as_array().unwrap() {
                    assert!(row["saves_us"].as_f64().unwrap() <= step, "{row}");
                }
            }
        }
    }
}

#[test]
fn a_copy_of_the_trace_has_the_path_and_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (device_golden("gpt-full"), folder.path().join("path.json"));
    let told = run([Path::new("critical-path"), &trace, Path::new("--out"), &out]).stderr;
    assert!(told.contains("wrote "), "{told}");
    let text = std::fs::read_to_string(&out).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    let records: Vec<&Value> = (written["traceEvents"].as_array().unwrap().iter())
        .filter(|record| record["cat"] == "critical_path")
        .collect();
    let count = |phase: &str| records.iter().filter(|it| it["ph"] == phase).count();
    assert!(count("b") > 10 && count("b") == count("e"));
    assert!(count("s") > 0 && count("s") == count("f"));
    let line = records.iter().find(|record| record["ph"] == "b").unwrap();
    assert_eq!(line["name"], "critical path");
    let table = |trace: &Path| run([Path::new("table"), trace]).stdout;
    assert_eq!(table(&out), table(&trace));
}

#[test]
fn only_chrome_traces_take_a_path() {
    let trace = device_golden("gpt-full");
    let refused = run([
        Path::new("critical-path"),
        &trace,
        Path::new("--out"),
        Path::new("path.pftrace"),
    ]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("Chrome traces only"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_trace_without_steps_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    write_trace(&trace, &[("aten::mm", 10)]);
    let text = run([Path::new("critical-path"), &trace]).printed();
    assert!(text.starts_with("Critical path of the recording"), "{text}");
}
