//! `mindprof what-if`.

use std::path::Path;

use crate::program::{Run, device_golden, golden_of, run};

fn what_if(trace: &Path, options: &[&str]) -> Run {
    let options = options.iter().map(Path::new);
    run([Path::new("what-if"), trace].into_iter().chain(options))
}

#[test]
fn a_faster_optimizer_shortens_the_step() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let text = what_if(&trace, &["--scale", "optimizer=0.5", "--width", "80"]).printed();
    assert!(text.starts_with("An average step would take "), "{text}");
    for expected in [
        "as recorded",
        "without the profiler",
        "with the change",
        "saved",
        "The profiler's own cost is about ",
        "Optimizer.step#",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn the_json_has_all_three_times() {
    let trace = device_golden("gpt-full");
    let answer = what_if(&trace, &["--cuda-graphs", "--json"]).json();
    let median = |of: &str| answer[of]["median_us"].as_f64().unwrap();
    assert!(median("changed") < median("unrecorded"));
    assert!(median("unrecorded") < median("recorded"));
    let saved = answer["saved_us"].as_f64().unwrap();
    let mean = |of: &str| answer[of]["mean_us"].as_f64().unwrap();
    assert!((mean("unrecorded") - mean("changed") - saved).abs() < 1e-3);
    let slower = what_if(&trace, &["--scale", "*=2", "--json"]).json();
    assert!(slower["saved_us"].as_f64().unwrap() < 0.0);
    assert!(slower["share"].as_f64().unwrap() < 0.0);
    assert_eq!(answer["numbers"].as_array().unwrap().len(), 2);
}

#[test]
fn a_name_that_nothing_has_is_an_error_with_a_hint() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let refused = what_if(&trace, &["--remove", "aten::adm"]);
    assert_eq!(refused.code, Some(1));
    let told = refused.stderr;
    assert!(told.contains("nothing called `aten::adm`"), "{told}");
    assert!(told.contains("hint: did you mean `aten::"), "{told}");
}

#[test]
fn no_change_is_a_usage_error() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let refused = what_if(&trace, &[]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("--remove NAME"),
        "{}",
        refused.stderr
    );
    for scale in [
        "optimizer",
        "optimizer=-1",
        "optimizer=1e12",
        "optimizer=nan",
    ] {
        let refused = what_if(&trace, &["--scale", scale]);
        assert_eq!(refused.code, Some(2));
        let told = refused.stderr;
        assert!(told.contains("a factor from 0 to 1000"), "{told}");
    }
}
