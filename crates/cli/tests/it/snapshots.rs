//! `mindprof memory` of memory snapshots.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Run, device_golden, run};

fn golden(name: &str) -> PathBuf {
    let folder = device_golden("gpt-full");
    folder.with_file_name(format!("{name}.snapshot.pickle.gz"))
}

fn memory(snapshot: &Path, arguments: &[&str]) -> Run {
    run([Path::new("memory"), snapshot]
        .into_iter()
        .chain(arguments.iter().map(Path::new)))
}

/// The peaks are those of `torch.cuda.memory_stats()` in the program that took the snapshot:
/// `requested_bytes.all.peak` and `reserved_bytes.all.peak`.
#[test]
fn peaks_are_those_that_torch_counted() {
    for (name, allocated, reserved) in [
        ("mlp", 221_352_016, 232_783_872),
        ("native", 221_352_016, 232_783_872),
        ("expandable", 221_352_016, 232_783_872),
        ("cpp", 221_352_012, 232_783_872),
        ("late", 241_352_016, 253_755_392),
        ("oom", 734_003_200, 734_003_200),
    ] {
        let json = memory(&golden(name), &["--json"]).json();
        let device = &json["devices"][0];
        assert_eq!(device["peak"]["allocated_bytes"], allocated, "{name}");
        assert_eq!(device["peak_reserved_bytes"], reserved, "{name}");
        assert_eq!(device["history"]["contradictions"], 0, "{name}");
        let lines = device["held"]["lines"].as_array().unwrap();
        let sum: i64 = lines
            .iter()
            .map(|line| line["bytes"].as_i64().unwrap())
            .sum();
        assert_eq!(sum, allocated, "{name}");
    }
}

#[test]
fn the_text_leads_with_the_peak_and_who_held_it() {
    let text = memory(&golden("mlp"), &[]).printed();
    let begin = "cuda:0: peak 211.10 MB allocated 5215.742 ms into the history, 69.00 MB (32.7%)\n\
                 of them by forward (/home/me/train.py:14).\nhint: ";
    assert!(text.starts_with(begin), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let only = memory(&golden("mlp"), &["--mine", "torch/optim"]).printed();
    assert!(only.contains("_init_group ("), "{only}");
}

#[test]
fn a_history_that_was_overwritten_is_said_to_be_cut() {
    let text = memory(&golden("ring"), &[]).printed();
    for part in [
        "note: the history is cut: 57.03 MB",
        "the most that it",
        "hint: raise max_entries",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let late = memory(&golden("late"), &[]).printed();
    assert!(
        late.contains("note: 19.07 MB are from before the history"),
        "{late}"
    );
    assert!(!late.contains("is cut"), "{late}");
}

#[test]
fn an_out_of_memory_error_comes_first() {
    let text = memory(&golden("oom"), &[]).printed();
    for part in [
        "cuda:0 ran out of memory: too_much (/home/me/train.py:43) asked for 900.00 MB\n",
        "a limit of the process was reached",
        "held then, by line:\n   700.00 MB 100.0%    7 blocks  too_much (/home/me/train.py:41)\n",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let json = memory(&golden("oom"), &["--json"]).json();
    let error = &json["devices"][0]["out_of_memory"][0];
    assert_eq!(error["shortage"]["cause"], "limited");
    assert_eq!(error["place"]["line"], 43);
}

#[test]
fn a_page_is_the_only_file() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("memory.html");
    memory(&golden("oom"), &["--out", page.to_str().unwrap()]).told();
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("<h1>Memory of cuda:0</h1>"));
    assert!(html.contains("reserved, not allocated") && html.contains("Out of memory"));
    let json = folder.path().join("memory.json");
    let refused = memory(&golden("oom"), &["--out", json.to_str().unwrap()]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("hint: write a page"),
        "{}",
        refused.stderr
    );
}

#[test]
fn options_of_traces_are_refused() {
    for options in [
        &["--steps", "1..2"][..],
        &["--process", "7"],
        &["--device", "cuda:3"],
    ] {
        let refused = memory(&golden("oom"), options);
        assert_eq!(refused.code, Some(1), "{options:?}");
        assert!(
            refused.stderr.contains("hint: leave out --"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(
        memory(&golden("oom"), &["--device", "cuda:0"]).code,
        Some(0)
    );
}

/// What this pickle says: `os.system("touch FILE")`, then stop.
#[test]
fn a_pickle_that_runs_code_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("ran");
    let command = format!("touch {}", mark.display());
    let length = u8::try_from(command.len()).unwrap();
    let pickle = [
        b"\x80\x04cos\nsystem\n\x8c",
        &[length][..],
        command.as_bytes(),
        b"\x85R.",
    ]
    .concat();
    let path = folder.path().join("snapshot.pickle");
    fs::write(&path, pickle).unwrap();
    let refused = memory(&path, &[]);
    assert_eq!(refused.code, Some(1));
    let part = "the pickle would run code: GLOBAL of `os.system` at byte 2";
    assert!(refused.stderr.contains(part), "{}", refused.stderr);
    assert!(!mark.exists());
}

#[test]
fn other_commands_point_to_the_one_that_reads_snapshots() {
    let refused = run([Path::new("table"), &golden("oom")]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("`mindprof memory FILE`"),
        "{}",
        refused.stderr
    );
}
