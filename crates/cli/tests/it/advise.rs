//! `mindprof advise` and `mindprof explain`.

use std::collections::BTreeSet;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::program::{device_golden, golden_of, run, write_trace};

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/advice.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn keys(of: &Value) -> BTreeSet<String> {
    of.as_object().unwrap().keys().cloned().collect()
}

/// Checks that an object has the required fields of a schema and no field that the schema lacks.
fn assert_fits(object: &Value, schema: &Value) {
    let known = keys(&schema["properties"]);
    let found = keys(object);
    assert!(found.is_subset(&known), "{found:?}");
    for required in schema["required"].as_array().unwrap() {
        assert!(found.contains(required.as_str().unwrap()), "{required}");
    }
}

#[test]
fn json_has_the_fields_of_the_documented_schema() {
    let schema = schema();
    for trace in [
        golden_of("mlp-full", "trace.json.gz"),
        device_golden("gpt-full"),
        device_golden("threads-full"),
    ] {
        let text = run([Path::new("advise"), &trace, Path::new("--json")]).printed();
        let advice: Value = serde_json::from_str(&text).unwrap();
        assert_fits(&advice, &schema);
        assert_fits(&advice["overhead"], &schema["properties"]["overhead"]);
        for finding in advice["findings"].as_array().unwrap() {
            assert_fits(finding, &schema["properties"]["findings"]["items"]);
            let share = finding["share"].as_f64().unwrap();
            assert!(finding["low"].as_f64().unwrap() <= share);
            assert!(share <= finding["high"].as_f64().unwrap().max(1e-9));
        }
    }
}

#[test]
fn text_fits_into_80_columns_and_lists_all_rules_on_request() {
    let trace = device_golden("threads-full");
    let text = run([
        Path::new("advise"),
        &trace,
        Path::new("--all"),
        Path::new("--width"),
        Path::new("80"),
    ])
    .printed();
    assert!(text.contains("without the profiler"), "{text}");
    assert!(text.contains("\nClean"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn narrower_than_40_columns_is_40_columns() {
    for trace in [device_golden("threads-full"), device_golden("gpt-full")] {
        let advise = |width: &str| {
            run(["advise", trace.to_str().unwrap(), "--all", "--width", width]).printed()
        };
        let text = advise("20");
        let is_narrow = |line: &str| line.chars().count() <= 40;
        assert!(text.lines().all(is_narrow), "{text}");
        assert_eq!(text, advise("40"));
    }
}

#[test]
fn a_finding_over_the_limit_is_told_by_the_exit_code() {
    let trace = device_golden("threads-full");
    let advise = |limit: &str| {
        let run = run([
            Path::new("advise"),
            &trace,
            Path::new("--fail-over"),
            Path::new(limit),
        ]);
        run.code
    };
    assert_eq!(advise("0.1%"), Some(1));
    assert_eq!(advise("100%"), Some(0));
    assert_eq!(advise("much"), Some(2));
    let missing = run([Path::new("advise"), Path::new("missing.json")]);
    assert_eq!(missing.code, Some(2));
}

#[test]
fn a_trace_without_steps_gets_advice_on_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    write_trace(&trace, &[("aten::mm", 10)]);
    let text = run([Path::new("advise"), &trace]).printed();
    assert!(text.starts_with("A program without steps: "), "{text}");
}

#[test]
fn an_explanation_is_one_page_and_the_same_each_time() {
    let trace = device_golden("gpt-full");
    let text = run([Path::new("explain"), &trace]).printed();
    let sections: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    assert_eq!(
        sections,
        [
            "## Findings",
            "## Your functions",
            "## Operators",
            "## What this rests on"
        ]
    );
    assert!(text.lines().count() < 80, "{text}");
    assert_eq!(run([Path::new("explain"), &trace]).printed(), text);
}

/// Writes a golden trace of a device without the events of some categories.
fn write_without(path: &Path, categories: &[&str]) {
    let golden = std::fs::File::open(device_golden("gpt-full")).unwrap();
    let mut trace: Value = serde_json::from_reader(GzDecoder::new(golden)).unwrap();
    let events = trace["traceEvents"].as_array_mut().unwrap();
    events.retain(|event| !categories.contains(&event["cat"].as_str().unwrap_or_default()));
    std::fs::write(path, trace.to_string()).unwrap();
}

#[test]
fn an_incomplete_trace_gets_no_clean_bill() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_without(&path("idle.json"), &["kernel", "gpu_memcpy", "gpu_memset"]);
    write_without(&path("whole.json"), &[]);
    let whole = std::fs::read(path("whole.json")).unwrap();
    std::fs::write(path("half.json"), &whole[..whole.len() / 2]).unwrap();
    let advise = |trace: &str, arguments: &[&str]| {
        let trace = path(trace);
        let shown = ["advise", trace.to_str().unwrap()];
        run(shown.iter().chain(arguments))
    };
    for (trace, reason, id) in [
        (
            "idle.json",
            "the trace lacks the device work of 312 of 312",
            "lacks_device_work",
        ),
        ("half.json", "the trace is damaged or cut off", "damaged"),
    ] {
        // A warning on stderr reports the cut, too.
        let text = advise(trace, &["--all", "--width", "0"]).stdout;
        assert!(text.contains(&format!("\nIncomplete: {reason}")), "{text}");
        assert!(
            text.contains("device work is missing from this trace"),
            "{text}"
        );
        let json = advise(trace, &["--json"]).json();
        assert_eq!(json["incomplete"][0], id);
        let judged = advise(trace, &["--fail-over", "100%"]);
        assert_eq!(judged.code, Some(2), "{}", judged.stderr);
        assert!(
            judged.stderr.contains("cannot be judged"),
            "{}",
            judged.stderr
        );
        assert!(
            judged.stderr.contains("--allow-incomplete"),
            "{}",
            judged.stderr
        );
        let judged = advise(trace, &["--fail-over", "100%", "--allow-incomplete"]);
        assert_eq!(judged.code, Some(0), "{}", judged.stderr);
    }
    let text = advise("whole.json", &[]).printed();
    assert!(!text.contains("Incomplete"), "{text}");
    assert_eq!(advise("whole.json", &["--fail-over", "100%"]).code, Some(0));
    assert_eq!(advise("whole.json", &["--allow-incomplete"]).code, Some(2));
}

// The page of `mindprof report` reads the sizes of kernels too, so both say the same.
#[test]
fn the_sizes_of_kernels_are_read() {
    let golden = std::fs::File::open(device_golden("gpt-full")).unwrap();
    let mut trace: Value = serde_json::from_reader(GzDecoder::new(golden)).unwrap();
    for event in trace["traceEvents"].as_array_mut().unwrap() {
        if event["cat"] == "kernel" {
            event["args"]["blocks per SM"] = 0.25.into();
            event["dur"] = 400.0.into();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.json");
    std::fs::write(&path, trace.to_string()).unwrap();
    let json = run([Path::new("advise"), &path, Path::new("--json")]).json();
    let findings = json["findings"].as_array().unwrap();
    let is_found = |finding: &Value| finding["rule"] == "underfilled-device";
    assert!(findings.iter().any(is_found), "{json}");
}
