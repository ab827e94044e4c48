//! `mindprof device`.

use std::path::Path;

use crate::program::{device_golden, golden_of, run, write_trace};

#[test]
fn a_trace_with_a_device_fits_eighty_columns() {
    for name in ["gpt-full", "mlp-plain", "threads-full"] {
        let trace = device_golden(name);
        let arguments = [
            Path::new("device"),
            &trace,
            Path::new("--width"),
            Path::new("80"),
        ];
        let text = run(arguments).printed();
        assert!(text.starts_with("cuda:0, NVIDIA H200: busy "), "{text}");
        assert!(text.contains("\nKernels: utilization "), "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }
}

#[test]
fn narrower_than_80_columns_is_80_columns() {
    for name in ["gpt-full", "threads-full"] {
        let trace = device_golden(name);
        let device = |width| run(["device", trace.to_str().unwrap(), "--width", width]).printed();
        let text = device("20");
        assert_eq!(text, device("80"));
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
}

#[test]
fn busy_and_idle_time_make_up_the_windows_in_json() {
    let trace = device_golden("gpt-full");
    let answer = run([Path::new("device"), &trace, Path::new("--json")]).json();
    let device = &answer["devices"][0];
    assert_eq!(device["card"]["model"], "H200");
    assert!(device["in_steps"]["sm_efficiency"].as_f64() > Some(0.0));
    let steps = device["each_step"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    for window in steps.iter().chain([&device["whole"]]) {
        let idle = window["idle"].as_object().unwrap().values();
        let idle: f64 = idle.map(|time| time.as_f64().unwrap()).sum();
        let time = |key: &str| window[key].as_f64().unwrap();
        let sum = time("busy_us") + idle + time("unrecorded_us");
        assert!((sum - time("duration_us")).abs() < 1e-3, "{window}");
        assert!(time("utilization") <= 1.0, "{window}");
    }
}

#[test]
fn a_trace_without_devices_is_no_failure() {
    let text = run([Path::new("device"), &golden_of("mlp-full", "trace.json.gz")]).printed();
    assert!(
        text.starts_with("No device work in this profile: "),
        "{text}"
    );
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    write_trace(&trace, &[("aten::mm", 10)]);
    let answer = run([Path::new("device"), &trace, Path::new("--json")]).json();
    assert_eq!(answer["devices"], serde_json::json!([]));
}
