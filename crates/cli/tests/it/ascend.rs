//! Files of Ascend profilers: every command reads them, and no track of gaps counts as work.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::program::{device_golden, run, table};

fn sample(name: &str) -> PathBuf {
    let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens/ascend");
    Path::new(goldens).join(name)
}

#[test]
fn the_table_of_an_npu_has_its_columns_and_no_gaps() {
    let trace = sample("trace_view.json.gz");
    let run = table(&trace, &["--row-limit", "8"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.contains("Self NPU"), "{}", run.stdout);
    assert!(
        run.stdout.ends_with("NPU time total: 1.790ms\n"),
        "{}",
        run.stdout
    );
    let json = table(&trace, &["--json"]).json();
    assert_eq!(json["self_device_time_total"], 1_790.457);
    let rows = json["rows"].as_array().unwrap();
    let row = |key: &str| rows.iter().find(|row| row["key"] == key);
    for gaps in ["Free", "Computing", "Overlap Analysis"] {
        assert!(row(gaps).is_none(), "{gaps}");
    }
    // Twelve of the kernels of `aclnnDivs`, as its flows say.
    let divide = row("aclnnDivs").unwrap();
    let kernel = row("aclnnDivs_RealDivAiCore_RealDiv").unwrap();
    assert_eq!(
        divide["self_device_time_total"],
        kernel["self_device_time_total"]
    );
    assert_eq!(kernel["count"], 12);
}

#[test]
fn every_command_reads_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let trace = sample("trace_view.json.gz");
    let steps = run([Path::new("steps"), &trace, Path::new("--json")]).json();
    assert_eq!(steps["steps"].as_array().map(Vec::len), Some(1), "{steps}");
    let device = run([Path::new("device"), &trace, Path::new("--json")]).json();
    assert_eq!(device["devices"][0]["device"], "npu:0", "{device}");
    let same = run([Path::new("diff"), &trace, &trace]);
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    for name in ["a.json", "a.pftrace", "a.parquet"] {
        let out = folder.path().join(name);
        let made = run([Path::new("convert"), &trace, &out]);
        assert_eq!(made.code, Some(0), "{name}: {}", made.stderr);
    }
    let out = folder.path().join("a.html");
    let report = run([Path::new("report"), &trace, Path::new("--out"), &out]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let again = table(&folder.path().join("a.json"), &["--json"]).json();
    assert_eq!(again["rows"], table(&trace, &["--json"]).json()["rows"]);
}

#[test]
fn an_npu_is_called_by_its_name() {
    let trace = sample("trace_view.json.gz");
    let info = run([Path::new("info"), &trace]).stdout;
    assert!(info.contains("  npu:0 "), "{info}");
    let info = run([Path::new("info"), &trace, Path::new("--json")]).json();
    assert_eq!(info["streams"][0]["device"], "npu", "{info}");
    let gpu = device_golden("mlp-plain");
    let diff = run([Path::new("diff"), &gpu, &trace, Path::new("--json")]).json();
    let devices = diff["rows"].as_array().unwrap().iter();
    let devices: BTreeSet<&str> = devices.map(|row| row["device"].as_str().unwrap()).collect();
    assert_eq!(devices, BTreeSet::from(["cpu", "cuda", "npu"]));
}

#[test]
fn the_memory_of_an_npu_is_shown_by_component() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory_record.csv");
    let head = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n";
    let both = "PTA,1704161511420306.491,1.0,20.0,1.0,0,NPU:3\n\
        APP,1704161511420307.491,N/A,64.0,N/A,N/A,NPU:3\nAPP,1704161511420308.491,N/A,60.0,N/A,N/A,NPU:3\n";
    std::fs::write(&path, format!("{head}{both}")).unwrap();
    let memory = |more: &[&str]| {
        let arguments = ["memory", path.to_str().unwrap()];
        run(arguments.iter().chain(more))
    };
    let text = memory(&[]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(
        text.stdout.starts_with("device npu:3: peak "),
        "{}",
        text.stdout
    );
    for line in [
        "npu:3 by component, over the whole recording:",
        "component  peak allocated  peak reserved  at the end",
        "APP                             64.00 MB    60.00 MB",
        "PTA               1.00 MB       20.00 MB    20.00 MB",
    ] {
        assert!(
            text.stdout.lines().any(|found| found == line),
            "{line}:\n{}",
            text.stdout
        );
    }
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80));
    let json = memory(&["--json", "--device", "npu:3"]).json();
    assert_eq!(json[0]["components"][0]["component"], "APP", "{json}");
    assert_eq!(json[0]["components"][0]["reserved"]["end"], 60 << 20);
    assert_ne!(memory(&["--device", "npu:2"]).code, Some(0));
    let out = folder.path().join("a.html");
    let report = run([Path::new("report"), &path, Path::new("--out"), &out]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let page = std::fs::read_to_string(&out).unwrap();
    assert!(page.contains("<caption>Memory by component of the software</caption>"));

    // Without torch's allocator there is no curve, but there are components.
    let alone = both.split_once('\n').unwrap().1;
    std::fs::write(&path, format!("{head}{alone}")).unwrap();
    let text = memory(&[]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(
        text.stdout.starts_with("npu:3 by component"),
        "{}",
        text.stdout
    );
    let json = memory(&["--json"]).json();
    assert_eq!(json[0]["device"], "npu:3", "{json}");
}

#[test]
fn a_gpu_and_an_npu_are_compared_by_operator_and_by_module() {
    let (gpu, npu) = (device_golden("mlp-plain"), sample("trace_view.json.gz"));
    let diff = |more: &[&str]| {
        let arguments = ["diff", gpu.to_str().unwrap(), npu.to_str().unwrap()];
        run(arguments.iter().chain(more))
    };
    let text = diff(&["--width", "80"]).stdout;
    assert!(
        text.contains("Kernels and runtime calls of cuda and npu"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let aligned = text.split_once("Kernels and runtime").unwrap().1;
    let mut lines = aligned.lines();
    let row = lines.find(|line| line.starts_with("aten::mm ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..3], ["6", "6"], "{row}");

    let json = diff(&["--json"]).json();
    let rows = json["rows"].as_array().unwrap();
    let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap();
    for (side, path) in [("before", &gpu), ("after", &npu)] {
        let table = table(path, &["--json"]).json();
        let operators = table["rows"].as_array().unwrap();
        let operator = operators
            .iter()
            .find(|row| row["key"] == "aten::mm")
            .unwrap();
        let told = row("aten::mm")[side]["device_total_us"].as_f64().unwrap();
        let known = operator["device_time_total"].as_f64().unwrap();
        assert!((told - known).abs() < 1e-3 && known > 0.0, "{told} {known}");
    }
    assert!(row("cudaLaunchKernel")["before"]["device_total_us"] == 0.0);
    let by_module = diff(&["--by", "module"]).stdout;
    let mut lines = by_module.lines();
    let header = lines.find(|line| line.starts_with("Operator")).unwrap();
    assert!(header.contains("Module"), "{by_module}");
    // Two traces of one kind of device are compared as before.
    let same = run([Path::new("diff"), &gpu, &gpu]).stdout;
    assert!(!same.contains("have different names"), "{same}");
}

#[test]
fn tables_of_kernels_are_read_alone() {
    let json = table(&sample("kernel_details.csv"), &["--json"]).json();
    let total = json["self_device_time_total"].as_f64().unwrap();
    assert!((total - 396_807.04).abs() < 1e-6, "{total}");
    let rows = json["rows"].as_array().unwrap();
    let reduce = rows.iter().find(|row| row["key"] == "hcom_allReduce_");
    assert_eq!(reduce.unwrap()["count"], 14);
    let sums = table(&sample("cluster_step_trace_time.csv"), &[]);
    assert_ne!(sums.code, Some(0));
    assert!(
        sums.stderr.contains("has sums without times"),
        "{}",
        sums.stderr
    );
}
