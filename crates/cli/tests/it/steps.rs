//! `mindprof steps`.

use std::path::Path;

use crate::program::{device_golden, golden_of, run, write_trace};

#[test]
fn a_trace_without_devices_is_split() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let text = run([Path::new("steps"), &trace]).printed();
    assert!(
        text.starts_with("2 steps: p50 12.6 ms, longest 17.3 ms"),
        "{text}"
    );
    assert!(
        text.contains("\noperators ") && text.contains("\nPython "),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn classes_sum_to_the_step_in_json() {
    let traces = [
        golden_of("mlp-full", "trace.json.gz"),
        device_golden("gpt-full"),
    ];
    for trace in traces {
        let text = run([Path::new("steps"), &trace, Path::new("--json")]).printed();
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        let steps = answer["steps"].as_array().unwrap();
        assert!(!steps.is_empty());
        for step in steps {
            let split = step["split"].as_object().unwrap().values();
            let sum: f64 = split.map(|time| time.as_f64().unwrap()).sum();
            let duration = step["duration_us"].as_f64().unwrap();
            assert!((sum - duration).abs() < 1e-3, "{step}");
        }
    }
}

#[test]
fn a_trace_without_steps_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    write_trace(&trace, &[("aten::mm", 10)]);
    let text = run([Path::new("steps"), &trace]).printed();
    assert!(text.starts_with("No complete steps: "), "{text}");
}
