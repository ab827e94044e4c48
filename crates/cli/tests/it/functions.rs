//! `mindprof functions`, `mindprof lines`, `mindprof modules`, and the selection of a part.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::program::{Run, golden, golden_of, run};

fn asked(command: &str, trace: &Path, arguments: &[&str]) -> Run {
    run([Path::new(command), trace]
        .into_iter()
        .chain(arguments.iter().map(Path::new)))
}

/// Writes a trace of two calls of `step`, whose line 4 runs an operator, and of one of `load`.
fn write_trace(path: &Path, sources: &Path) {
    let call = |name: &str, number: u32, parent: u32, ts: u32, dur: u32| {
        json!({
            "ph": "X", "cat": "python_function", "name": name, "pid": 7, "tid": 7, "ts": ts,
            "dur": dur, "args": {"Python id": number, "Python parent id": parent},
        })
    };
    let op = |name: &str, ts: u32, dur: u32| {
        json!({
            "ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": dur,
            "args": {},
        })
    };
    let trace = json!({
        "traceEvents": [
            op("aten::empty", 0, 1),
            call("train.py(1): main", 1, 0, 10, 200),
            call("train.py(3): step", 2, 1, 20, 60),
            op("aten::mm", 30, 40),
            call("train.py(8): load", 3, 1, 100, 30),
            call("train.py(3): step", 4, 1, 140, 60),
            op("aten::mm", 150, 30),
        ],
        "mindprof_sources": {"own": [["train.py", sources.to_str().unwrap()]]},
    });
    fs::write(path, trace.to_string()).unwrap();
}

fn names(json: &serde_json::Value, list: &str) -> Vec<(String, f64)> {
    let rows = json[list].as_array().unwrap().iter();
    rows.map(|row| {
        let name = row["function"].as_str().unwrap().to_owned();
        (name, row["own"]["cpu_us"].as_f64().unwrap())
    })
    .collect()
}

#[test]
fn functions_are_those_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.json");
    write_trace(&trace, &folder.path().join("train.py"));
    let json = asked("functions", &trace, &["--json"]).json();
    let expected = [("step", 120.0), ("main", 50.0), ("load", 30.0)];
    assert_eq!(
        names(&json, "functions"),
        expected.map(|(name, time)| (name.into(), time))
    );
    assert!(json.get("lines").is_none());
    let text = asked("functions", &trace, &["--width", "80"]).printed();
    assert!(text.contains("train.py:3 step"), "{text}");
    assert!(text.contains("aten::mm"), "{text}");
    let other = asked("functions", &trace, &["--mine", "nowhere", "--json"]).json();
    assert!(other.get("functions").is_none());
}

#[test]
fn a_part_is_selected_by_name_and_number() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.json");
    write_trace(&trace, &folder.path().join("train.py"));
    let own = |arguments: &[&str]| {
        let all: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        names(&asked("functions", &trace, &all).json(), "functions")
    };
    // `main` has no own time within, but all of the total.
    let all = [("step".into(), 120.0), ("main".into(), 0.0)];
    assert_eq!(own(&["--within", "step"]), all);
    let second = [("step".into(), 60.0), ("main".into(), 0.0)];
    assert_eq!(own(&["--within", "step#2"]), second);
    let table = asked("table", &trace, &["--within", "step#1", "--json"]).json();
    assert_eq!(table["self_cpu_time_total"], 40.0);
    let wrong = asked("table", &trace, &["--within", "stop"]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.stderr.contains("did you mean `step`?"),
        "{}",
        wrong.stderr
    );
    let wrong = asked("stacks", &trace, &["--steps", "1..2"]);
    assert!(
        wrong.stderr.contains("the trace has no steps"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn lines_are_shown_beside_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, source) = (folder.path().join("t.json"), folder.path().join("train.py"));
    write_trace(&trace, &source);
    let missing = asked("lines", &trace, &["train.py", "--width", "80"]);
    assert!(
        missing
            .stderr
            .contains("the source of train.py is not here"),
        "{}",
        missing.stderr
    );
    assert!(
        missing.stdout.contains("train.py:3 def step"),
        "{}",
        missing.stdout
    );
    fs::write(
        &source,
        "def main():\n    pass\ndef step():\n    return mm()\n",
    )
    .unwrap();
    let found = asked("lines", &trace, &["train.py", "--width", "80"]);
    let expected =
        "  59.7%    59.7%      3  def step():\n                      4      return mm()\n";
    assert!(found.stdout.contains(expected), "{}", found.stdout);
    assert!(
        found.stderr.contains("was changed after the recording"),
        "{}",
        found.stderr
    );
    let other = asked("lines", &trace, &["other.py"]);
    assert!(
        other.stderr.contains("choose from train.py"),
        "{}",
        other.stderr
    );
}

#[test]
fn a_table_of_sampled_functions_reports_that_calls_are_not_calls() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.json");
    let mut json = json!({
        "traceEvents": [{
            "ph": "X", "cat": "python_function", "name": "a.py(1): f", "pid": 7, "tid": 7, "ts": 0,
            "dur": 10, "args": {"Python id": 1, "Python parent id": 0},
        }],
    });
    let told = "Python functions were sampled: their calls and averages are those of the pieces";
    fs::write(&trace, json.to_string()).unwrap();
    assert!(!asked("table", &trace, &[]).stderr.contains(told));
    json["mindprof_sampling"] = json!({"interval_us": 10_000, "samples": 9, "dropped": 0});
    fs::write(&trace, json.to_string()).unwrap();
    let found = asked("table", &trace, &[]);
    assert!(found.stderr.contains(told), "{}", found.stderr);
}

#[test]
fn files_of_one_name_have_a_list_each() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.json");
    let op = |name: &str, number: u32, ts: u32| {
        json!({
            "ph": "X", "cat": "python_function", "name": name, "pid": 7, "tid": 7, "ts": ts,
            "dur": 10, "args": {"Python id": number, "Python parent id": 0},
        })
    };
    let sources = ["a", "b"].map(|package| {
        let file = folder.path().join(format!("{package}.py"));
        fs::write(&file, format!("def work_of_{package}():\n    pass\n")).unwrap();
        json!([format!("{package}/util.py"), file.to_str().unwrap()])
    });
    let json = json!({
        "traceEvents": [op("a/util.py(1): work", 1, 0), op("b/util.py(1): work", 2, 20)],
        "mindprof_sources": {"own": sources},
    });
    fs::write(&trace, json.to_string()).unwrap();
    let both = asked("lines", &trace, &["util.py"]);
    for text in [
        "a/util.py: 10.000us of 20.000us (50.0%)",
        "b/util.py: 10.000us of 20.000us (50.0%)",
        "  50.0%    50.0%      1  def work_of_a():",
        "  50.0%    50.0%      1  def work_of_b():",
    ] {
        assert!(both.stdout.contains(text), "{}", both.stdout);
    }
    let one = asked("lines", &trace, &["b/util.py"]).stdout;
    assert!(
        !one.contains("work_of_a") && one.contains("work_of_b"),
        "{one}"
    );
}

#[test]
fn modules_of_one_class_share_a_row_unless_asked() {
    let trace = golden_of("cnn-full", "trace.json.gz");
    let modules = |arguments: &[&str]| {
        let json = asked("modules", &trace, arguments).json();
        let rows = json["modules"].as_array().unwrap().clone();
        let name = |row: &serde_json::Value| row["module"].as_str().unwrap().to_owned();
        rows.iter().map(name).collect::<Vec<String>>()
    };
    let classes = modules(&["--json"]);
    assert!(classes.contains(&"Conv2d".into()), "{classes:?}");
    let instances = modules(&["--json", "--instances"]);
    assert!(instances.contains(&"Conv2d_0".into()), "{instances:?}");
    let text = asked("modules", &golden("trace.json.gz"), &["--width", "80"]).printed();
    assert!(text.starts_with("No modules in the profile"), "{text}");
}

#[test]
fn texts_fit_the_width() {
    let trace = golden_of("cnn-full", "trace.json.gz");
    for (command, arguments) in [
        ("functions", &["--width", "80"][..]),
        ("lines", &["--width", "80"]),
        ("modules", &["--width", "80"]),
        (
            "table",
            &["--width", "80", "--group-by", "line", "--row-limit", "-1"],
        ),
    ] {
        let text = asked(command, &trace, arguments).printed();
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(command == "modules" || text.contains("record.py"), "{text}");
    }
}

#[test]
fn tables_are_split_by_line_function_module_and_dtype() {
    let trace = golden_of("cnn-full", "trace.json.gz");
    let table = |arguments: &[&str]| asked("table", &trace, arguments);
    for (label, header, expected) in [
        ("line", " Line ", "record.py"),
        ("function", " Function ", "forward"),
        ("module", " Module ", "Conv2d"),
        ("dtype", " Input Dtypes ", "float32"),
    ] {
        let text = table(&["--group-by", label, "--width", "120", "--row-limit", "-1"]).printed();
        assert!(text.contains(header) && text.contains(expected), "{text}");
    }
    let run = table(&["--group-by", "line,module"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("takes one of stack, line"),
        "{}",
        run.stderr
    );
}
