//! Published traces of other projects, if `../shared/traces` exists: each is read, summarized and
//! written in every format, and everything that a format omits is reported.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::program::{Run, run};

/// Returns the traces; prints a line and returns nothing if the folder does not exist.
fn traces() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = ["../shared/traces", "../../shared/traces"]
        .iter()
        .find_map(|place| fs::read_dir(root.join(place)).ok());
    let Some(found) = found else {
        #[expect(clippy::print_stderr, reason = "a test that is passed over says so")]
        {
            eprintln!("skipped: there is no ../shared/traces");
        }
        return Vec::new();
    };
    let paths = found.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension() == Some("gz".as_ref()))
        .collect()
}

fn asked(command: &str, trace: &Path, arguments: &[&str]) -> Run {
    run([Path::new(command), trace]
        .into_iter()
        .chain(arguments.iter().map(Path::new)))
}

fn json(command: &str, trace: &Path) -> Value {
    asked(command, trace, &["--json"]).json()
}

/// Counts complete events by category, straight from the file.
fn categories(trace: &Path) -> BTreeMap<String, u64> {
    let file = fs::File::open(trace).unwrap();
    let document: Value = serde_json::from_reader(GzDecoder::new(file)).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let mut counts = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let category = event["cat"].as_str().unwrap_or("");
        *counts.entry(category.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn kernels_are_kernels() {
    for trace in traces() {
        let own = categories(&trace);
        let sum = |names: &[&str]| names.iter().filter_map(|name| own.get(*name)).sum::<u64>();
        let told = json("info", &trace)["categories"].clone();
        let name = trace.display();
        for (shown, names) in [
            ("kernel", &["kernel", "Kernel"][..]),
            ("gpu_memcpy", &["gpu_memcpy", "Memcpy"]),
            ("gpu_memset", &["gpu_memset", "Memset"]),
            ("cuda_sync", &["cuda_sync"]),
            ("mtia_ccp_events", &["mtia_ccp_events"]),
        ] {
            assert_eq!(
                told[shown].as_u64().unwrap_or(0),
                sum(names),
                "{name} {shown}"
            );
        }
        // The table has columns for device time if there is device work.
        let has_work = sum(&["kernel", "Kernel", "mtia_ccp_events"]) > 0;
        let table = asked("table", &trace, &[]);
        assert_eq!(table.code, Some(0), "{name}");
        let has_device =
            table.stdout.contains("Self CUDA %") || table.stdout.contains("Self MTIA %");
        assert_eq!(has_device, has_work, "{name}");
    }
}

#[test]
fn streams_have_their_numbers_and_are_not_threads() {
    for trace in traces() {
        let info = json("info", &trace);
        let name = trace.display();
        for stream in info["streams"].as_array().unwrap() {
            let said = stream["name"].as_str().unwrap().trim_end();
            if let Some(number) = said.strip_prefix("stream ") {
                assert_eq!(stream["thread"].to_string(), number, "{name}");
            }
        }
        for thread in info["threads"].as_array().unwrap() {
            let said = thread["name"].as_str().unwrap();
            assert!(!said.starts_with("stream "), "{name} {thread}");
        }
    }
}

#[test]
fn faults_are_gone_from_a_rewritten_trace() {
    let folder = tempfile::tempdir().unwrap();
    for trace in traces() {
        let verified = asked("verify", &trace, &[]);
        assert!(matches!(verified.code, Some(0 | 1)), "{verified:?}");
        let out = folder.path().join("again.json.gz");
        let converted = asked("convert", &trace, &[out.to_str().unwrap()]);
        assert_eq!(converted.code, Some(0), "{converted:?}");
        let again = asked("verify", &out, &[]);
        assert_eq!(again.code, Some(0), "{} {}", trace.display(), again.stdout);
    }
}

/// Returns the summary of a trace without its repairs, and without an empty list of devices, which a
/// rewritten trace always has.
fn info(trace: &Path) -> Value {
    let mut info = json("info", trace);
    info.as_object_mut().unwrap().remove("repairs");
    let metadata = info["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, value| key != "deviceProperties" || *value != Value::Array(Vec::new()));
    info
}

#[test]
fn traces_survive_a_round_trip_in_every_compression() {
    let folder = tempfile::tempdir().unwrap();
    for trace in traces() {
        let expected = info(&trace);
        let table = asked("table", &trace, &["--json"]).stdout;
        for name in ["a.json", "a.json.gz", "a.json.zst"] {
            let out = folder.path().join(name);
            let converted = asked("convert", &trace, &[out.to_str().unwrap()]);
            assert_eq!(converted.code, Some(0), "{converted:?}");
            assert_eq!(info(&out), expected, "{} {name}", trace.display());
        }
        let again = asked("table", &folder.path().join("a.json"), &["--json"]);
        assert!(again.stdout == table, "{}", trace.display());
    }
}

/// Returns the number of events and memory records that, by its warnings, a conversion left out.
fn without_row(notes: &str) -> u64 {
    let told = notes
        .lines()
        .filter_map(|line| line.split_once(" has no row for "));
    let count = |(_, said): (&str, &str)| {
        let number = said.split(' ').next().unwrap();
        number.parse::<u64>().unwrap()
    };
    told.map(count).sum()
}

#[test]
fn every_format_takes_every_trace_and_reports_omissions() {
    let folder = tempfile::tempdir().unwrap();
    for trace in traces() {
        let info = json("info", &trace);
        let events = info["events"].as_u64().unwrap();
        let memory = info["memory_records"].as_u64().unwrap();
        for name in [
            "a.pftrace",
            "a.speedscope.json",
            "a.folded",
            "a.parquet",
            "a.arrow",
            "a.csv",
        ] {
            let out = folder.path().join(name);
            let run = asked("convert", &trace, &[out.to_str().unwrap(), "--json"]);
            let place = format!("{} {name}: {}", trace.display(), run.stderr);
            assert_eq!(run.code, Some(0), "{place}");
            let written = run.json()["written"].as_u64().unwrap();
            match run.json()["unit"].as_str().unwrap() {
                "event" => assert_eq!(written, events, "{place}"),
                // Every event and memory record is either a row or reported.
                "row" => assert_eq!(
                    written + without_row(&run.stderr),
                    events + memory,
                    "{place}"
                ),
                _ => assert!(written > 0, "{place}"),
            }
            let lack = match name {
                "a.pftrace" => None,
                "a.speedscope.json" | "a.folded" => Some(format!(" {memory} memory records\n")),
                _ => Some(" memory records: the row of ".to_owned()),
            };
            let is_told = |lack: String| run.stderr.contains(&lack);
            assert_eq!(
                lack.map_or_else(|| run.stderr.contains("memory records"), is_told),
                memory > 0 && name != "a.pftrace",
                "{place}"
            );
            fs::remove_file(&out).unwrap();
        }
    }
}
