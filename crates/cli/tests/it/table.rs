//! `mindprof table`: rows, columns, widths and messages.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use flate2::read::GzDecoder;

use crate::program::{Run, device_golden, golden, golden_of, mindprof, run, table, write_trace};

fn says(name: &str) -> serde_json::Value {
    let compressed = fs::read(golden_of(name, "says.json.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(compressed.as_slice())
        .read_to_string(&mut text)
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_table_is_torchs_table() {
    let by_shape = ["--group-by", "shape", "--sort-by", "cpu_time_total"];
    for (name, table_name, arguments) in [
        (
            "gpt-plain",
            "sort:count,limit5",
            &["--sort-by", "count", "--row-limit", "5"][..],
        ),
        (
            "gpt-plain",
            "default",
            // The names of `run`.
            &["--limit", "100", "--sort", "none"],
        ),
        ("cnn-full", "default", &["--sort-by", "none"]),
        ("mlp-full", "default", &["--sort-by", "none"]),
        (
            "cnn-full",
            "by_input_shape",
            &[&by_shape[..], &["--row-limit", "25"]].concat(),
        ),
    ] {
        let run = table(&golden_of(name, "trace.json.gz"), arguments);
        let says = says(name);
        assert_eq!(run.stdout, says["tables"][table_name].as_str().unwrap());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn options_reach_the_table() {
    let trace = golden("trace.json.gz");
    let lines = |arguments: &[&str]| table(&trace, arguments).stdout.lines().count();
    assert_eq!(lines(&["--row-limit", "-1"]), 102 + 5);
    assert_eq!(lines(&["--row-limit", "3"]), 3 + 5);
    let run = table(
        &trace,
        &["--top-level-only", "--time-unit", "s", "--header", "Above"],
    );
    assert!(run.stdout.contains("\nAbove\n"), "{}", run.stdout);
    assert!(run.stdout.contains("ProfilerStep*"), "{}", run.stdout);
    assert!(!run.stdout.contains("aten::"), "{}", run.stdout);
    assert!(
        run.stdout.ends_with("s\n") && !run.stdout.contains("ms"),
        "{}",
        run.stdout
    );
    let run = table(
        &trace,
        &["--max-name-column-width", "20", "--row-limit", "1"],
    );
    assert!(
        run.stdout.starts_with(&format!("{}  --", "-".repeat(20))),
        "{}",
        run.stdout
    );
}

#[test]
fn a_trace_without_events_prints_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.json");
    fs::write(&path, "{\"traceEvents\": []}").unwrap();
    let run = table(&path, &[]);
    assert_eq!(run.stdout, "No events were recorded.\n");
    assert_eq!((run.stderr.as_str(), run.code), ("", Some(0)));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut command = mindprof();
    command
        .arg("table")
        .arg(golden("trace.json.gz"))
        .args(["--row-limit", "-1"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn help_has_an_example_and_the_defaults() {
    let run: Run = mindprof()
        .args(["table", "--help"])
        .output()
        .unwrap()
        .into();
    assert_eq!(run.code, Some(0));
    // clap wraps long lines.
    let help = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "mindprof table trace.json.gz --sort-by self_cpu_time_total --row-limit 10",
        "[default: 100; all with --json]",
        "[default: 55]",
        "[default: `self_device_time_total` if a device was used, else `self_cpu_time_total`]",
        "[default: terminal width]",
    ] {
        assert!(help.contains(part), "{part} is missing in\n{}", run.stdout);
    }
}

#[test]
fn json_has_all_rows_and_a_limited_table_reports_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.json");
    let names: Vec<String> = (0..150).map(|number| format!("op{number}")).collect();
    let events: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    write_trace(&path, &events);
    let json = table(&path, &["--json"]);
    assert_eq!(json.stderr, "");
    assert_eq!(json.json()["rows"].as_array().unwrap().len(), 150);
    let few = table(&path, &["--json", "--row-limit", "7"]).json();
    assert_eq!(few["rows"].as_array().unwrap().len(), 7);
    assert_eq!(few["row_count"], 150);
    let text = table(&path, &[]);
    assert_eq!(
        text.stderr,
        "50 more rows not shown; use --row-limit -1 to show all\n"
    );
    assert_eq!(table(&path, &["--row-limit", "100"]).stderr, "");
}

#[test]
fn json_has_the_rows_under_torchs_names() {
    let json = table(
        &golden_of("cnn-full", "trace.json.gz"),
        &[
            "--json",
            "--sort-by",
            "count",
            "--row-limit",
            "3",
            "--percentiles",
        ],
    )
    .json();
    let says = says("cnn-full");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    let said = says["default"].as_array().unwrap();
    for row in rows {
        let said = said.iter().find(|said| said["key"] == row["key"]).unwrap();
        for name in ["count", "cpu_time_total", "cpu_memory_usage", "flops"] {
            assert_eq!(row[name].as_f64(), said[name].as_f64(), "{name}");
        }
        assert_eq!(row["percentiles"].as_array().unwrap().len(), 4);
    }
    let total = json["self_cpu_time_total"].as_f64().unwrap();
    assert!((total - says["self_cpu_time_total"].as_f64().unwrap()).abs() < 0.01);
    assert_eq!(json["lost"]["total"], 0);
}

#[test]
fn grouping_by_overload_causes_a_warning() {
    let trace = golden("trace.json.gz");
    let plain = table(&trace, &["--row-limit", "100"]).printed();
    let asked = table(&trace, &["--group-by", "overload", "--row-limit", "100"]);
    assert_eq!((asked.code, asked.stdout), (Some(0), plain));
    let told = "traces do not record overloads, so --group-by overload has no effect\n";
    assert!(asked.stderr.starts_with("warning: ") && asked.stderr.ends_with(told));
}

#[test]
fn a_trace_can_come_through_a_pipe() {
    let trace = golden("trace.json.gz");
    let expected = table(&trace, &["--row-limit", "100"]).printed();
    let mut command = mindprof();
    command
        .args(["table", "-", "--row-limit", "100"])
        .stdin(File::open(&trace).unwrap());
    let found = Run::from(command.output().unwrap()).printed();
    assert_eq!(found, expected);
    let mut command = mindprof();
    command.args(["table", "-"]).stdin(Stdio::null());
    let run = Run::from(command.output().unwrap());
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr.starts_with("error: stdin: the file is empty"),
        "{}",
        run.stderr
    );
}

#[test]
fn sums_of_nothing_are_zero() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.json");
    fs::write(&path, "[]").unwrap();
    let text = table(&path, &["--json"]).printed();
    assert!(text.contains("\"self_cpu_time_total\": 0.0"), "{text}");
    assert!(text.contains("\"self_device_time_total\": 0.0"), "{text}");
}

#[test]
fn an_unknown_category_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let event =
        r#"{"ph": "X", "cat": "npu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1, "dur": 1}"#;
    fs::write(&path, format!("[{event}, {event}]")).unwrap();
    let said = "2 events of the unknown category `npu_op`";
    let found = table(&path, &[]);
    let warning = format!("warning: {}: {said}, shown as CPU events\n", path.display());
    assert_eq!((found.code, found.stderr), (Some(0), warning));
    let found = run(["verify".as_ref(), path.as_os_str()]);
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""));
    assert!(
        found
            .stdout
            .contains(&format!("  {said}, shown as CPU events\n"))
    );
    let found = run(["info".as_ref(), path.as_os_str(), "--json".as_ref()]);
    assert_eq!(found.json()["unknown_categories"]["npu_op"], 2);
}

#[test]
fn a_table_fits_the_width() {
    for (trace, needed) in [
        (
            device_golden("gpt-full"),
            &["Self CUDA", "Self CPU", "# of Calls"][..],
        ),
        (
            golden_of("mlp-full", "trace.json.gz"),
            &["Self CPU", "# of Calls"],
        ),
    ] {
        let widths: Vec<usize> = ["60", "80", "120", "200"]
            .into_iter()
            .map(|width| {
                let text = table(&trace, &["--width", width, "--row-limit", "20"]).printed();
                for header in needed {
                    assert!(text.contains(header), "no {header:?} in\n{text}");
                }
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
                assert!(widest <= width.parse().unwrap(), "{widest}\n{text}");
                text.lines().next().unwrap().split_whitespace().count()
            })
            .collect();
        // A wider table has more columns.
        assert!(widths.is_sorted() && widths[3] > widths[0], "{widths:?}");
        let grouped = table(&trace, &["--width", "80", "--group-by", "shape,stack:2"]).stdout;
        assert!(
            grouped.lines().all(|line| line.chars().count() <= 80),
            "{grouped}"
        );
        assert!(grouped.contains("Input Shapes"), "{grouped}");
    }
}

#[test]
fn columns_are_shown_in_the_requested_order() {
    let trace = device_golden("gpt-full");
    let columns = [
        "--columns",
        "count,name,self_cuda_time_total,p99",
        "--row-limit",
        "3",
    ];
    let text = table(&trace, &columns).printed();
    let header = text.lines().nth(1).unwrap();
    let words: Vec<&str> = header.split("  ").filter(|word| !word.is_empty()).collect();
    let words: Vec<&str> = words.into_iter().map(str::trim).collect();
    assert_eq!(
        words,
        ["# of Calls", "Name", "Self CUDA", "CPU p99"],
        "{text}"
    );
}

#[test]
fn rows_are_sorted_by_self_time_unless_requested_otherwise() {
    let amounts = |trace: &Path, arguments: &[&str], key: &str| -> Vec<f64> {
        let json = table(trace, &[arguments, &["--json"]].concat()).json();
        let rows = json["rows"].as_array().unwrap().iter();
        rows.map(|row| row[key].as_f64().unwrap()).collect()
    };
    let falls = |amounts: &[f64]| amounts.is_sorted_by(|a, b| a >= b);
    let (device, host) = (
        device_golden("gpt-full"),
        golden_of("mlp-full", "trace.json.gz"),
    );
    // Rows without device time follow those with it, and users' ranges on devices come last.
    let of_device = amounts(&device, &[], "self_device_time_total");
    let is_range = |amount: &&f64| **amount > 0.0;
    let ranges = of_device.iter().rev().take_while(is_range).count();
    assert!(ranges > 0 && falls(&of_device[..of_device.len() - ranges]));
    assert!(falls(&amounts(&host, &[], "self_cpu_time_total")));
    let first_run = ["--sort-by", "none"];
    assert!(!falls(&amounts(&host, &first_run, "self_cpu_time_total")));
}

/// Writes a trace in which a module is imported inside an operator, and a step is on another thread:
///
/// ```text
/// op            |-------------------|   100..200
/// call             |--------|           110..160
/// import torch       |---|              120..150
/// inner                    |-|          152..157
/// ProfilerStep#3    |-------------|     115..190
/// op2                                |--|   200..230
/// ```
fn write_run(path: &Path, metadata: &serde_json::Value) {
    let event = |category: &str, name: &str, thread: u64, start: u64, duration: u64| {
        serde_json::json!({
            "ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start,
            "dur": duration, "args": {},
        })
    };
    let mut trace = metadata.clone();
    trace["traceEvents"] = serde_json::json!([
        event("cpu_op", "op", 2, 100, 100),
        event("python_function", "a.py(1): call", 2, 110, 50),
        event("user_annotation", "import torch", 2, 120, 30),
        event("cpu_op", "inner", 2, 152, 5),
        event("user_annotation", "ProfilerStep#3", 3, 115, 75),
        event("cpu_op", "op2", 2, 200, 30),
    ]);
    fs::write(path, trace.to_string()).unwrap();
}

/// Returns the name, self time and total time of each row, in microseconds.
fn rows(rows: &serde_json::Value) -> Vec<(String, f64, f64)> {
    let time = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| {
        let name = row["key"].as_str().unwrap().to_owned();
        let own = time(row, "self_cpu_time_total");
        (name, own, time(row, "cpu_time_total"))
    })
    .collect()
}

fn row(name: &str, own: f64, total: f64) -> (String, f64, f64) {
    (name.to_owned(), own, total)
}

#[test]
fn imports_and_steps_of_a_run_are_reported_beside_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("run.json");
    let ranges = serde_json::json!({ "imports": ["import torch"], "steps": ["ProfilerStep*"] });
    write_run(&trace, &serde_json::json!({ "mindprof_run": ranges }));
    let run = table(&trace, &["--json"]);
    let (json, trace_name) = (run.json(), trace.display());
    // The Python call counts as self time of the operator; the import counts nowhere.
    let program = [
        row("op", 65.0, 70.0),
        row("op2", 30.0, 30.0),
        row("inner", 5.0, 5.0),
    ];
    assert_eq!(rows(&json["rows"]), program);
    assert_eq!(json["self_cpu_time_total"], 100.0);
    let mut left_out = rows(&json["left_out"]);
    left_out.sort_by(|a, b| a.0.cmp(&b.0));
    let ranges = [
        row("ProfilerStep*", 75.0, 75.0),
        row("import torch", 30.0, 30.0),
    ];
    assert_eq!(left_out, ranges);
    let said = format!(
        "{trace_name}: imports: 30.000us (torch 30.000us), not in the table; \
         --all-ranges shows them\n\
         {trace_name}: steps: 1 range, not in the table; `mindprof info` lists them\n"
    );
    assert_eq!(run.stderr, said);
    let text = table(&trace, &[]).stdout;
    assert!(
        !text.contains("import") && !text.contains("ProfilerStep"),
        "{text}"
    );
    assert!(text.contains("Self CPU time total: 100.000us"), "{text}");
    // Rows split by stack have the same times.
    let json = table(&trace, &["--json", "--group-by", "stack"]).json();
    let inner = row("inner", 5.0, 5.0);
    assert_eq!(
        rows(&json["rows"]),
        [row("op", 65.0, 70.0), row("op2", 30.0, 30.0), inner]
    );
    assert_eq!(json["rows"][2]["stack"][0], "a.py(1): call");
}

#[test]
fn other_traces_keep_rows_named_like_imports_and_steps() {
    let folder = tempfile::tempdir().unwrap();
    let ranges = serde_json::json!({ "imports": ["import torch"], "steps": ["ProfilerStep*"] });
    for (metadata, arguments) in [
        (serde_json::json!({}), &["--json"][..]),
        (serde_json::json!({ "mindprof_run": 3 }), &["--json"]),
        (
            serde_json::json!({ "mindprof_run": ranges }),
            &["--json", "--all-ranges"],
        ),
    ] {
        let trace = folder.path().join("plain.json");
        write_run(&trace, &metadata);
        let run = table(&trace, arguments);
        let mut found = rows(&run.json()["rows"]);
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let all = [
            row("ProfilerStep*", 75.0, 75.0),
            row("import torch", 30.0, 30.0),
            row("inner", 5.0, 5.0),
            row("op", 50.0, 100.0),
            row("op2", 30.0, 30.0),
        ];
        assert_eq!(found, all, "{metadata}");
        assert_eq!(run.json()["left_out"], serde_json::json!([]));
        assert_eq!(run.stderr, "");
    }
}
