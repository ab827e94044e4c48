//! `mindprof memory`.

use std::fs;
use std::path::Path;

use crate::program::{Run, device_golden, golden, golden_of, run};

fn memory(trace: &Path, arguments: &[&str]) -> Run {
    run([Path::new("memory"), trace]
        .into_iter()
        .chain(arguments.iter().map(Path::new)))
}

#[test]
fn devices_are_sorted_by_peak() {
    let trace = device_golden("gpt-full");
    let text = memory(&trace, &[]).printed();
    let devices: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("device "))
        .collect();
    assert_eq!(devices.len(), 2);
    assert!(devices[0].starts_with("device cuda:0: peak "), "{text}");
    assert!(devices[1].starts_with("device cpu: peak "), "{text}");
    let one = memory(&trace, &["--device", "cuda:0"]).printed();
    assert!(text.starts_with(&one), "{one}");
}

/// The largest `Total Allocated` of the trace is 84,996,096 bytes. The trace recorded the allocation
/// of 5,085,184 of them and the release of some others.
#[test]
fn memory_from_before_the_window_has_its_own_band() {
    let trace = device_golden("gpt-full");
    let text = memory(&trace, &["--device", "cuda:0"]).printed();
    for part in [
        "device cuda:0: peak 81.06 MB,",
        "\nbefore the window      73.41 MB ",
        "\nnot known               7.65 MB ",
        "categories are not known",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    for word in ["at least", "gradient", "0 B"] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
    let json = memory(&trace, &["--device", "cuda:0", "--json"]).json();
    let device = &json[0];
    assert_eq!(device["peak_bytes"], 84_996_096);
    assert_eq!(device["unseen"]["what"], "before the window");
    assert_eq!(device["peak"]["GRADIENT"], serde_json::Value::Null);
    assert_eq!(device["categories_known"], false);
    assert_eq!(device["precision"], "exact");
    let parts = ["unseen", "peak"].map(|key| {
        let found = &device[key];
        let found = found.get("peak_bytes").or_else(|| found.get("UNKNOWN"));
        found.unwrap().as_i64().unwrap()
    });
    assert_eq!(parts.iter().sum::<i64>(), 84_996_096);
}

#[test]
fn lower_bounds_are_marked() {
    let trace = device_golden("threads-full");
    let text = memory(&trace, &[]).printed();
    assert!(text.contains("device cuda:0: peak at least 161."), "{text}");
    assert!(text.contains("\nnot in the trace "), "{text}");
    // torch's totals of CPU memory still include 2.85 MB from an earlier recording.
    let host = memory(&golden_of("mlp-full", "trace.json.gz"), &[]).printed();
    assert!(
        host.starts_with("device cpu: peak at least 64.04 KB"),
        "{host}"
    );
}

#[test]
fn a_file_has_the_device_with_the_most_memory() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("m.html");
    memory(
        &device_golden("gpt-full"),
        &["--out", out.to_str().unwrap()],
    )
    .told();
    let page = fs::read_to_string(&out).unwrap();
    for part in [
        "<title>Memory of cuda:0</title>",
        "<strong>81.06 MB</strong>",
        ">before the window</th>",
        ">not known</th>",
    ] {
        assert!(page.contains(part), "no {part:?}");
    }
}

#[test]
fn json_has_the_peak_and_its_holders() {
    let json = memory(&golden_of("mlp-full", "trace.json.gz"), &["--json"]).json();
    let devices = json.as_array().unwrap();
    assert_eq!(devices.len(), 1);
    let peak = devices[0]["peak_bytes"].as_i64().unwrap();
    let holders = devices[0]["holders"].as_array().unwrap();
    let held: i64 = holders
        .iter()
        .map(|holder| holder["bytes"].as_i64().unwrap())
        .sum();
    assert!(held > 0);
    assert_eq!(devices[0]["unseen"], serde_json::Value::Null);
    assert_eq!(held, peak);
}

#[test]
fn timelines_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden_of("mlp-full", "trace.json.gz");
    for (name, begin) in [
        ("m.html", "<!"),
        ("m.json", "[["),
        ("m.raw.json.gz", "\u{1f}"),
        ("M.JSON", "[["),
        ("M.HTML", "<!"),
    ] {
        let out = folder.path().join(name);
        let told = memory(&trace, &["--out", out.to_str().unwrap()]).told();
        assert!(told.ends_with(", memory of cpu)\n"), "{told}");
        let bytes = fs::read(&out).unwrap();
        assert!(bytes.starts_with(begin.as_bytes()), "{name}");
    }
}

#[test]
fn missing_memory_records_are_an_error() {
    let trace = golden("trace.json.gz");
    let run = memory(&trace, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    let path = trace.display();
    let expected = format!(
        "error: {path}: no memory records\nhint: record with profile_memory=True or `mindprof run --memory --shapes`\n"
    );
    assert_eq!(run.stderr, expected);
    let run = memory(
        &golden_of("mlp-full", "trace.json.gz"),
        &["--device", "cuda:0"],
    );
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(
        run.stderr.ends_with("hint: select one of cpu\n"),
        "{}",
        run.stderr
    );
    let run = memory(
        &golden_of("mlp-full", "trace.json.gz"),
        &["--device", "gpu"],
    );
    assert_eq!(run.code, Some(2));
}

#[test]
fn an_unknown_extension_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("memory.png");
    let found = memory(
        &device_golden("gpt-full"),
        &["--out", out.to_str().unwrap()],
    );
    assert_eq!((found.code, found.stdout.as_str()), (Some(2), ""));
    let expected = "unknown file extension\nhint: use one of .json, .raw.json, .html";
    assert!(found.stderr.contains(expected), "{}", found.stderr);
    assert!(!out.exists());
}

/// Writes a trace of two processes with blocks at one address.
fn trace_of_two(folder: &Path) -> std::path::PathBuf {
    let event = |process: u64, time: u64, bytes: i64, total: u64| {
        serde_json::json!({
            "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": process, "tid": process,
            "ts": time, "s": "t", "args": {
                "Addr": 4096, "Bytes": bytes, "Total Allocated": total, "Device Type": 0, "Device Id": -1,
            },
        })
    };
    let events = [
        event(11, 100, 64, 64),
        event(22, 110, 1024, 1024),
        event(11, 120, -64, 0),
    ];
    let path = folder.join("two.json");
    let trace = serde_json::json!({ "traceEvents": events });
    fs::write(&path, trace.to_string()).unwrap();
    path
}

#[test]
fn each_process_is_reported_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace_of_two(folder.path());
    let text = memory(&trace, &[]).printed();
    let heads: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("device"))
        .map(|line| line.split(", ").next().unwrap())
        .collect();
    let expected = [
        "device cpu of process 22: peak at least 1.00 KB",
        "device cpu of process 11: peak at least 64 B",
    ];
    assert_eq!(heads, expected);
    let json = memory(&trace, &["--json"]).json();
    let told: Vec<_> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["process"].as_u64(), entry["end_bytes"].as_i64()))
        .collect();
    assert_eq!(told, [(Some(22), Some(1024)), (Some(11), Some(0))]);
}

#[test]
fn a_file_has_one_process_and_the_others_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace_of_two(folder.path());
    let out = folder.path().join("m.json");
    let out = out.to_str().unwrap();
    let told = memory(&trace, &["--out", out]).told();
    let expected = ", memory of cpu of process 22)\n\
                    not in the file: memory of cpu of process 11; use --device or --process to select one\n";
    assert!(told.ends_with(expected), "{told}");
    let told = memory(&trace, &["--process", "11", "--out", out]).told();
    assert!(told.ends_with(", memory of cpu of process 11)\n"), "{told}");
    let points = fs::read_to_string(out).unwrap();
    assert_eq!(
        points,
        "[[100, 120], [[0, 0, 0, 0, 0, 0, 0, 0, 64], [0, 0, 0, 0, 0, 0, 0, 0, 0]]]"
    );
    let run = memory(&trace, &["--process", "33"]);
    assert_eq!(run.code, Some(1));
    let hint = "no memory records of process 33\nhint: select one of cpu of process 22, cpu of process 11\n";
    assert!(run.stderr.ends_with(hint), "{}", run.stderr);
}

/// Writes a trace of a training thread, whose memory is reported, and of a thread that creates the
/// batches, whose memory is not, as torch records them.
///
/// ```text
/// training  |neg w|                  alloc 64, |mul w, batch 1|   |mul w, batch 2|
/// silent            |fill_ batch 1|                             |fill_ batch 2|
/// ```
fn trace_with_a_silent_thread(folder: &Path) -> std::path::PathBuf {
    let operator = |thread: u64, name: &str, time: u64, storages: &[u64]| {
        let sizes: Vec<[u64; 1]> = storages.iter().map(|_| [1 << 18]).collect();
        let strides: Vec<[u64; 1]> = storages.iter().map(|_| [1]).collect();
        let types: Vec<&str> = storages.iter().map(|_| "float").collect();
        serde_json::json!({
            "ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": time, "dur": 5,
            "args": {
                "Input Dims": sizes, "Input Strides": strides, "Input type": types,
                "Input Storages": storages,
            },
        })
    };
    let (weight, batches) = (1 << 30, [2 << 30, 3 << 30]);
    let events = [
        operator(1, "aten::neg", 100, &[weight]),
        operator(2, "aten::fill_", 110, &[batches[0]]),
        serde_json::json!({
            "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1,
            "ts": 120, "s": "t", "args": {
                "Addr": 4096, "Bytes": 64, "Total Allocated": 64, "Device Type": 0, "Device Id": -1,
            },
        }),
        operator(1, "aten::mul", 130, &[weight, batches[0]]),
        operator(2, "aten::fill_", 140, &[batches[1]]),
        operator(1, "aten::mul", 150, &[weight, batches[1]]),
    ];
    let path = folder.join("silent.json");
    let trace = serde_json::json!({ "schemaVersion": 1, "traceEvents": events });
    fs::write(&path, trace.to_string()).unwrap();
    path
}

#[test]
fn blocks_of_a_silent_thread_are_not_a_leak() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace_with_a_silent_thread(folder.path());
    let text = memory(&trace, &[]).printed();
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "device cpu: peak at least 2.00 MB, 0.030 ms into the window; at least 1.00 MB at the end ",
        " at least: 2 blocks (2.00 MB) are counted only while seen in use, and may have existed for longer ",
        " their allocation or release was not recorded: torch does not report the memory of all threads and libraries ",
        " before the window (1 block)",
        " before the window, or by a thread whose memory was not recorded (1 block)",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let json = memory(&trace, &["--json"]).json();
    let device = &json[0];
    assert_eq!(device["precision"], "at least");
    assert_eq!(
        device["untimed"],
        serde_json::json!({ "blocks": 2, "bytes": 2 << 20 })
    );
    let holders = device["holders"].as_array().unwrap();
    let origins: Vec<_> = holders
        .iter()
        .map(|holder| holder["preexisting"].as_bool())
        .collect();
    for origin in [Some(true), Some(false), None] {
        assert!(origins.contains(&origin), "{device}");
    }
    let out = folder.path().join("m.html");
    memory(&trace, &["--out", out.to_str().unwrap()]).told();
    let page = fs::read_to_string(&out).unwrap();
    for part in [
        "<strong>at least 2.00 MB</strong>",
        "; at least 1.00 MB in use at the end.",
        "<p>At least: 2 blocks (2.00 MB) are counted only while seen in use",
        "torch does not report the memory of all threads and libraries.</p>",
    ] {
        assert!(page.contains(part), "no {part:?}");
    }
}
