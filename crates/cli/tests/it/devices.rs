//! Traces with devices: what counts as device work, and how the table fits a terminal.

use std::path::Path;

use crate::program::{device_golden, run, table};

/// Writes a small trace with a device: an operator that waits for its kernel, and a user's range on
/// the device that is longer than the kernel.
fn write_waiting(path: &Path) {
    let event = |category: &str, name: &str, track: (i64, i64), span: (u64, u64), number: u64| {
        serde_json::json!({
            "ph": "X", "cat": category, "name": name, "pid": track.0, "tid": track.1,
            "ts": span.0, "dur": span.1, "args": { "External id": number, "correlation": number + 50 },
        })
    };
    let (host, stream, device) = ((1, 2), (0, 7), (0, -1));
    let events = [
        event("cpu_op", "aten::item", host, (100, 100), 1),
        event("cuda_runtime", "cudaLaunchKernel", host, (110, 5), 1),
        event("cuda_runtime", "cudaDeviceSynchronize", host, (120, 70), 2),
        event("kernel", "gemm", stream, (130, 20), 1),
        event("cuda_sync", "Context Sync", device, (120, 70), 2),
        event("gpu_user_annotation", "## forward ##", stream, (125, 60), 3),
    ];
    let trace = serde_json::json!({ "traceEvents": events });
    std::fs::write(path, trace.to_string()).unwrap();
}

#[test]
fn a_wait_of_the_cpu_is_not_device_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write_waiting(&path);
    let info = run([Path::new("info"), &path, Path::new("--json")]).json();
    assert_eq!(info["categories"]["cuda_sync"], 1);
    assert_eq!(info["unknown_categories"], serde_json::json!({}));
    let streams = info["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 1, "{streams:?}");
    assert_eq!(
        (&streams[0]["thread"], &streams[0]["busy_us"]),
        (&7.into(), &20.0.into())
    );
    let table = table(&path, &["--json"]).json();
    assert_eq!(table["self_device_time_total"], 20.0);
    let rows = table["rows"].as_array().unwrap();
    let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap();
    assert_eq!(row("Context Sync")["count"], 1);
    assert_eq!(row("Context Sync")["self_device_time_total"], 0.0);
    assert_eq!(row("aten::item")["self_device_time_total"], 20.0);
    // A rewritten trace has the same events, and the flow event from the call that waited.
    let again = folder.path().join("b.json");
    run([Path::new("convert"), &path, &again]).told();
    let written = std::fs::read_to_string(&again).unwrap();
    assert_eq!(written.matches("\"cuda_sync\"").count(), 1, "{written}");
    assert_eq!(written.matches("\"cat\":\"ac2g\"").count(), 4, "{written}");
}

#[test]
fn device_ranges_come_after_device_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write_waiting(&path);
    let keys = |arguments: &[&str]| -> Vec<String> {
        let json = table(&path, &[arguments, &["--json"]].concat()).json();
        let rows = json["rows"].as_array().unwrap();
        rows.iter()
            .map(|row| row["key"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(keys(&[]).last().unwrap(), "## forward ##");
    assert_eq!(
        keys(&["--sort-by", "self_device_time_total"])[0],
        "## forward ##"
    );
}

#[test]
fn a_table_fits_twenty_columns() {
    let text = table(
        &device_golden("gpt-full"),
        &["--width", "20", "--row-limit", "5"],
    )
    .printed();
    let widest = text
        .lines()
        .map(|line| line.trim_end().chars().count())
        .max();
    assert!(widest <= Some(20), "{text}");
    assert!(text.contains("us"), "{text}");
}
