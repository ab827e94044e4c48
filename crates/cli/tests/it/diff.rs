//! `mindprof diff`: its tables, its JSON and the exit codes of `--fail-over`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Run, device_golden, golden_of, run, write_trace};

fn diff(before: &Path, after: &Path, arguments: &[&str]) -> Run {
    let paths = [Path::new("diff"), before, after];
    run(paths.into_iter().chain(arguments.iter().map(Path::new)))
}

/// Two traces: `mm` takes 50% longer, `relu` half the time, one operator is gone and one is new.
fn pair(folder: &Path) -> (PathBuf, PathBuf) {
    let (before, after) = (folder.join("a.json"), folder.join("b.json"));
    write_trace(
        &before,
        &[("mm", 100), ("relu", 10), ("old", 40), ("same", 50)],
    );
    write_trace(
        &after,
        &[("mm", 150), ("relu", 5), ("same", 50), ("new", 5)],
    );
    (before, after)
}

#[test]
fn rows_are_sorted_by_the_size_of_their_change() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = pair(folder.path());
    let text = diff(&before, &after, &[]).printed();
    assert_eq!(
        text,
        "\
Name  Calls A  Calls B     Self A     Self B  Self diff  Change %    Total A    Total B  Total diff
----  -------  -------  ---------  ---------  ---------  --------  ---------  ---------  ----------
mm          1        1  100.000us  150.000us  +50.000us    +50.0%  100.000us  150.000us   +50.000us
old         1        0   40.000us          -  -40.000us      gone   40.000us          -   -40.000us
relu        1        1   10.000us    5.000us   -5.000us    -50.0%   10.000us    5.000us    -5.000us
new         0        1          -    5.000us   +5.000us       new          -    5.000us    +5.000us

Rows: 2 changed, 1 new, 1 gone, 1 without change
Events compared: 4 -> 4
Self CPU time total: 200.000us -> 210.000us (+5.0%)
Span: 200.000us -> 210.000us (+5.0%)
"
    );
    let limited = diff(&before, &after, &["--row-limit", "1"]).printed();
    assert!(limited.contains("\nmm ") && limited.contains("\n... and 3 more rows that changed\n"));
}

#[test]
fn imports_of_a_run_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = pair(folder.path());
    let text = fs::read_to_string(&after).unwrap();
    let mut trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array_mut().unwrap();
    events.push(serde_json::json!({
        "ph": "X", "cat": "user_annotation", "name": "import torch", "pid": 1, "tid": 2, "ts": 1000,
        "dur": 50,
    }));
    for (imports, is_compared) in [(vec!["import torch"], false), (vec![], true)] {
        trace["mindprof_run"] = serde_json::json!({ "imports": imports, "steps": [] });
        fs::write(&after, trace.to_string()).unwrap();
        let text = diff(&before, &after, &[]).printed();
        assert_eq!(text.contains("import torch"), is_compared, "{text}");
    }
}

#[test]
fn rows_by_count_show_the_change_of_the_count() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = pair(folder.path());
    let text = diff(&before, &after, &["--measure", "count"]).printed();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("Name  Calls A  Calls B  Calls diff  "),
        "{text}"
    );
    assert!(
        lines[2].starts_with("new         0        1          +1  "),
        "{text}"
    );
    assert!(
        lines[3].starts_with("old         1        0          -1  "),
        "{text}"
    );
}

#[test]
fn json_has_every_row_and_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = pair(folder.path());
    let json = diff(&before, &after, &["--json"]).json();
    let rows = json["rows"].as_array().unwrap();
    let states: Vec<_> = rows
        .iter()
        .map(|row| row["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["changed", "gone", "changed", "new", "same"]);
    assert_eq!(rows[0]["change"]["self_us"], 50.0);
    assert_eq!(rows[0]["growth"], 0.25);
    assert_eq!(rows[1]["after"], serde_json::Value::Null);
    assert_eq!(json["growth"], 0.05);
    assert_eq!(json["before"]["count"], 4);
}

#[test]
fn a_limit_sets_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = pair(folder.path());
    for (arguments, code) in [
        (&["--fail-over", "5%"][..], 0),
        (&["--fail-over", "4.9%"], 1),
        (&["--fail-over", "24%", "--fail-on", "row"], 1),
        (&["--fail-over", "25%", "--fail-on", "row"], 0),
        (&["--fail-over", "0%", "--measure", "count"], 0),
    ] {
        let run = diff(&before, &after, arguments);
        assert_eq!(run.code, Some(code), "{arguments:?}");
        let verdict = if code == 0 {
            ", within "
        } else {
            ", more than "
        };
        assert!(run.stderr.contains(verdict), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    let run = diff(&before, &after, &["--fail-over", "6"]);
    assert_eq!(run.stderr, "CPU time grew by 5.0%, within 6%\n");
    let run = diff(&before, &after, &["--fail-over", "20", "--fail-on", "row"]);
    assert_eq!(run.stderr, "mm grew by 25.0% of the whole, more than 20%\n");
    assert_eq!(diff(&after, &before, &["--fail-over", "0%"]).code, Some(0));
}

#[test]
fn a_trace_does_not_differ_from_itself() {
    let host = golden_of("cnn-full", "trace.json.gz");
    for trace in [host, device_golden("gpt-full")] {
        let run = diff(&trace, &trace, &["--fail-over", "0%"]);
        let told = (run.code, run.stderr.as_str());
        assert_eq!(told, (Some(0), "CPU time did not grow, within 0%\n"));
        let text = run.stdout;
        assert!(
            text.starts_with("No change.\nRows: 0 changed, 0 new, 0 gone, "),
            "{text}"
        );
    }
}

#[test]
fn a_narrow_text_says_that_rows_are_split_by_shapes_it_does_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["a.json", "b.json"].map(|name| folder.path().join(name));
    let shaped = |duration: u64, size: u64, start: u64| {
        serde_json::json!({
            "ph": "X", "cat": "cpu_op", "name": "aten::a_rather_long_name", "pid": 1, "tid": 2,
            "ts": start, "dur": duration,
            "args": { "Input Dims": [[size, size], [size, size]] },
        })
    };
    let none = serde_json::json!({});
    write_events(&before, &[shaped(10, 8, 0), shaped(20, 9, 100)], &none);
    write_events(&after, &[shaped(15, 8, 0), shaped(30, 9, 100)], &none);
    let line = "Rows are split by input shapes; --by name joins them.\n";
    for (arguments, is_said) in [
        (&["--width", "60"][..], true),
        (&["--width", "200"], false),
        (&["--width", "60", "--by", "name"], false),
    ] {
        let text = diff(&before, &after, arguments).printed();
        assert_eq!(text.contains(line), is_said, "{text}");
        assert_eq!(
            text.contains("Input Shapes"),
            arguments[1] == "200",
            "{text}"
        );
    }
}

#[test]
fn rows_are_matched_by_shape_unless_by_name_is_given() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    let rows = |arguments: &[&str]| {
        let json = diff(&trace, &trace, &[arguments, &["--json"]].concat()).json();
        let rows = json["rows"].as_array().unwrap().clone();
        (rows.len(), rows[0]["input_shapes"].is_array())
    };
    let (by_shape, by_name) = (rows(&[]), rows(&["--by", "name"]));
    assert!(by_shape.0 > by_name.0);
    assert_eq!((by_shape.1, by_name.1), (true, false));
}

#[test]
fn failures_have_another_code_than_differences() {
    let folder = tempfile::tempdir().unwrap();
    let (before, _) = pair(folder.path());
    let run = diff(&before, Path::new("missing.json"), &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert_eq!(
        run.stderr,
        "error: missing.json: no such file or directory\n"
    );
    for limit in ["-5", "-5%"] {
        let run = diff(&before, &before, &["--fail-over", limit]);
        assert_eq!(run.code, Some(2));
        let error = "a limit cannot be negative: use 0% or more";
        assert!(run.stderr.contains(error), "{}", run.stderr);
        assert!(!run.stderr.contains("-- -5"), "{}", run.stderr);
    }
    let run = diff(&before, &before, &["--fail-over", "much"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert_eq!(diff(&before, &before, &["--fail-on", "row"]).code, Some(2));
}

#[test]
fn an_empty_or_truncated_trace_is_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = pair(folder.path());
    let none = folder.path().join("none.json");
    write_trace(&none, &[]);
    let cut = folder.path().join("cut.json");
    let text = fs::read_to_string(&after).unwrap();
    fs::write(&cut, &text[..text.len() - 40]).unwrap();
    for (trace, what) in [
        (&none, "has no events: it cannot be judged against a limit"),
        (
            &cut,
            "is damaged or cut off: it cannot be judged against a limit",
        ),
    ] {
        assert_eq!(diff(&before, trace, &[]).code, Some(0));
        let run = diff(&before, trace, &["--fail-over", "5%"]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        let error = format!("error: {}: {what}\nhint: ", trace.display());
        assert!(run.stderr.contains(&error), "{}", run.stderr);
    }
    for trace in [&none, &cut] {
        assert_eq!(diff(trace, &after, &["--fail-over", "5%"]).code, Some(2));
    }
}

/// Writes a trace with these events and top-level keys.
fn write_events(path: &Path, events: &[serde_json::Value], facts: &serde_json::Value) {
    let mut trace = facts.clone();
    trace["traceEvents"] = events.into();
    fs::write(path, trace.to_string()).unwrap();
}

fn event(category: &str, phase: &str, duration: u64) -> serde_json::Value {
    serde_json::json!({
        "ph": phase, "cat": category, "name": "mm", "pid": 1, "tid": 2, "ts": 10, "dur": duration,
    })
}

#[test]
fn a_trace_that_leaves_nothing_to_compare_is_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["a.json", "b.json"].map(|name| folder.path().join(name));
    let none = serde_json::json!({});
    write_events(&before, &[event("cpu_op", "X", 100)], &none);
    for (category, phase, what) in [
        ("cpu_op", "i", "has no operators, ranges or device work"),
        ("cuda_sync", "X", "has no operators, ranges or device work"),
        ("cpu_op", "X", "has no event with a duration"),
    ] {
        write_events(&after, &[event(category, phase, 0)], &none);
        for limit in [
            &["--fail-over", "5%"][..],
            &["--fail-over", "5%", "--allow-incomplete"],
        ] {
            for (first, second) in [(&before, &after), (&after, &before)] {
                let run = diff(first, second, limit);
                assert_eq!(run.code, Some(2), "{category} {phase}: {}", run.stderr);
                let error = format!("error: {}: {what}: it cannot", after.display());
                assert!(run.stderr.contains(&error), "{}", run.stderr);
            }
        }
        // Without a limit there is nothing to judge.
        assert_eq!(diff(&before, &after, &[]).code, Some(0));
    }
    let other = folder.path().join("c.json");
    write_trace(&other, &[("softmax", 1)]);
    let run = diff(&before, &other, &["--fail-over", "5%"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("has no row in common with the first"));
}

#[test]
fn an_incomplete_trace_is_judged_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["a.json", "b.json"].map(|name| folder.path().join(name));
    let events = [event("cpu_op", "X", 100), event("cpu_op", "X", 50)];
    write_events(&before, &events, &serde_json::json!({}));
    for (facts, what) in [
        (
            serde_json::json!({ "mindprof": { "lost": { "budget": 48 } } }),
            "lost 48 events, up to 96.0% of its CPU events",
        ),
        (
            serde_json::json!({ "mindprof_damage": { "altered": 90 } }),
            "has a note of loss, cuts or damage that cannot be read",
        ),
        (
            serde_json::json!({ "mindprof": { "lost": { "workers": 1 } } }),
            "lacks the recording of a worker or of torch's collector",
        ),
        (
            serde_json::json!({ "mindprof_damage": { "cuts": 1, "altered": 0 } }),
            "is damaged or cut off",
        ),
        (
            serde_json::json!({ "mindprof_slim": { "events": 9, "kept": 2, "clipped": 0 } }),
            "was cut by `mindprof slim` to 2 of 9 events",
        ),
    ] {
        write_events(&after, &events, &facts);
        for (first, second) in [(&before, &after), (&after, &before)] {
            let run = diff(first, second, &["--fail-over", "5%"]);
            assert_eq!(run.code, Some(2), "{what}: {}", run.stderr);
            let (name, line) = (after.display(), "it cannot be judged against a limit");
            let error = format!("error: {name}: {what}: {line}\nhint: ");
            assert!(run.stderr.contains(&error), "{}", run.stderr);
            assert!(run.stderr.contains("--allow-incomplete"), "{}", run.stderr);
            let run = diff(first, second, &["--fail-over", "5%", "--allow-incomplete"]);
            assert_eq!(run.code, Some(0), "{what}: {}", run.stderr);
            let verdict = "CPU time did not grow, within 5%";
            assert_eq!(run.stderr, format!("warning: {name} {what}\n{verdict}\n"));
            // Without a limit, the text says it too.
            let run = diff(first, second, &[]);
            let column = if first == &after { "A" } else { "B" };
            let note = format!("\nnote: {column} {what}\n");
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
            assert!(run.stdout.ends_with(&note), "{}", run.stdout);
            let json = diff(first, second, &["--json"]).json();
            let side = if first == &after { "before" } else { "after" };
            assert_eq!(json["notes"][0]["side"], side, "{json}");
            assert!(json["notes"][0]["kind"].is_string(), "{json}");
        }
    }
    let run = diff(&before, &before, &["--allow-incomplete"]);
    assert_eq!(run.code, Some(2), "it needs a limit");
}

#[test]
fn a_trace_that_was_cut_or_repaired_remembers_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let whole = golden_of("mlp-full", "trace.json.gz");
    let slim = path("slim.json");
    let done = run([
        Path::new("slim"),
        &whole,
        &slim,
        Path::new("--min-duration"),
        Path::new("50us"),
    ]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let run_diff = diff(&whole, &slim, &["--fail-over", "5%"]);
    assert_eq!(run_diff.code, Some(2), "{}", run_diff.stderr);
    let (before, after) = pair(folder.path());
    let text = fs::read_to_string(&after).unwrap();
    let (cut, first, second) = (path("cut.json"), path("once.json"), path("twice.json"));
    fs::write(&cut, &text[..text.len() - 40]).unwrap();
    for (from, to) in [(&cut, &first), (&first, &second)] {
        let done = run([Path::new("convert"), from, to]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
    }
    let verified = run([Path::new("verify"), &second]);
    assert_eq!(
        verified.code,
        Some(0),
        "its text has no faults: {}",
        verified.stdout
    );
    let run_diff = diff(&before, &second, &["--fail-over", "5%"]);
    assert_eq!(run_diff.code, Some(2), "{}", run_diff.stderr);
    assert!(run_diff.stderr.contains("is damaged or cut off"));
}

#[test]
fn options_that_differ_are_warnings_beside_the_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["a.json", "b.json"].map(|name| folder.path().join(name));
    let mut shaped = event("cpu_op", "X", 100);
    shaped["args"] = serde_json::json!({ "Input Dims": [[2, 3]], "Input type": ["float"] });
    let facts = serde_json::json!({});
    write_events(&before, &[event("cpu_op", "X", 100)], &facts);
    write_events(&after, &[shaped], &facts);
    let run = diff(&before, &after, &["--fail-over", "5%"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let after = after.display();
    let warning = "input shapes, and recording them takes time\n";
    let verdict = "CPU time did not grow, within 5%\n";
    assert_eq!(
        run.stderr,
        format!("warning: only {after} has {warning}{verdict}")
    );
    let note = "\nnote: only B has input shapes, and recording them takes time\n";
    assert!(run.stdout.ends_with(note), "{}", run.stdout);
}

#[test]
fn a_trace_that_lacks_the_devices_of_the_first_is_not_judged() {
    let (with, without) = (
        device_golden("mlp-plain"),
        golden_of("mlp-full", "trace.json.gz"),
    );
    let run = diff(&with, &without, &["--fail-over", "900%"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    let what = "has no device work, but the first does: they cannot be judged against a limit";
    assert!(run.stderr.contains(what), "{}", run.stderr);
    // In the opposite direction, device time grew from nothing.
    assert_eq!(
        diff(&without, &with, &["--fail-over", "900%"]).code,
        Some(1)
    );
}

#[test]
fn a_limit_below_one_without_a_unit_causes_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = pair(folder.path());
    let run = diff(&before, &after, &["--fail-over", "0.05"]);
    assert_eq!(
        run.stderr,
        "warning: the limit is 0.05%; write 5% if you meant the fraction 0.05\n\
         CPU time grew by 5.0%, more than 0.05%\n"
    );
    let run = diff(&before, &after, &["--fail-over", "0.05%"]);
    assert_eq!(run.stderr, "CPU time grew by 5.0%, more than 0.05%\n");
}

#[test]
fn the_requested_width_is_kept() {
    for trace in [
        golden_of("mlp-full", "trace.json.gz"),
        device_golden("gpt-full"),
    ] {
        let other = device_golden("mlp-plain");
        for width in [150, 100, 80, 40, 20] {
            let text = diff(&trace, &other, &["--width", &width.to_string()]).printed();
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}: {text}");
        }
    }
}

/// Writes calls of Python functions and the range of an import, as `mindprof run` records a script.
fn write_calls(path: &Path, functions: &[(&str, u64)]) {
    let event = |category: &str, name: &str, start: u64, duration: u64| {
        serde_json::json!({
            "ph": "X", "cat": category, "name": name, "pid": 1, "tid": 2, "ts": start, "dur": duration,
        })
    };
    let mut events = vec![event("user_annotation", "import json", 10, 5)];
    let mut start = 100;
    for (name, duration) in functions {
        events.push(event("python_function", name, start, *duration));
        start += duration;
    }
    let trace = serde_json::json!({ "traceEvents": events });
    fs::write(path, trace.to_string()).unwrap();
}

#[test]
fn traces_without_operators_are_compared_by_python_function() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("a.json"), folder.path().join("b.json"));
    write_calls(
        &before,
        &[
            ("a.py(1): f", 10),
            ("<built-in method x of Y object at 0x7f1>", 20),
        ],
    );
    write_calls(
        &after,
        &[
            ("a.py(1): f", 30),
            ("<built-in method x of Y object at 0x6a2>", 20),
        ],
    );
    let run = diff(&before, &after, &["--fail-over", "5%"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(
        run.stderr,
        "no operators in the traces: comparing Python functions\n\
         CPU time grew by 57.1%, more than 5%\n"
    );
    let totals = "Rows: 1 changed, 0 new, 0 gone, 2 without change";
    assert!(run.stdout.contains(totals), "{}", run.stdout);
    let table = crate::program::table(&before, &[]);
    assert!(table.stdout.contains("a.py(1): f"), "{}", table.stdout);
    let said = format!(
        "{}: no operators in the trace: showing Python functions\n",
        before.display()
    );
    assert_eq!(table.stderr, said);
}

#[test]
fn no_two_columns_have_one_name() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = pair(folder.path());
    for measure in ["self", "total", "count"] {
        let text = diff(&before, &after, &["--measure", measure]).printed();
        let header = text.lines().next().unwrap();
        let mut names: Vec<&str> = header.split("  ").map(str::trim).collect();
        names.retain(|name| !name.is_empty());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{header}");
    }
}

#[test]
fn rows_are_matched_by_function_module_and_dtype() {
    let trace = golden_of("cnn-full", "trace.json.gz");
    for (label, header, expected) in [
        ("function", "Function", "forward"),
        ("module", "Module", "Conv2d"),
        ("dtype", "Input Dtypes", "float32"),
    ] {
        let (all, part) = (&["--group-by", label][..], &["--by", label, "--json"][..]);
        let text = diff(&trace, &trace, all).printed();
        assert!(text.contains("No change"), "{text}");
        let json = diff(&trace, &trace, part).json();
        let rows = json["rows"].as_array().unwrap();
        let is_there = |row: &serde_json::Value| row["label"].as_str().unwrap().contains(expected);
        assert!(rows.iter().any(is_there), "{header}");
    }
}
