//! Replays of planted training runs, compared with their times without a profiler and without the
//! fault. The recordings are not part of the project: without them there is nothing to compare.

#![expect(clippy::print_stdout, reason = "the ratios explain a failure")]

use std::path::{Path, PathBuf};

use mindprof_analyze::{Analysis, Cut, slim};
use mindprof_answers::{
    Bound, Changes, CriticalPath, OwnCode, PathKind, PathOptions, Prediction, Replay, Timing,
};
use mindprof_model::{Category, Nanos};
use mindprof_trace::read_trace;
use serde_json::Value;

/// The faults that removing or scaling work can mend, and the changes that do so.
const MENDED: [(&str, &str, &[&str]); 12] = [
    // A fused optimizer takes 1.5 ms where this one takes 8.9 ms, both under the profiler.
    ("cpu", "adam-one-by-one", &["_single_tensor_adam=0.2"]),
    ("cpu", "checkpoint-in-a-step", &["save_checkpoint=0"]),
    // A fused optimizer takes next to no time on the CPU.
    ("cuda", "adam-one-by-one", &["_single_tensor_adam=0"]),
    ("cuda", "checkpoint-in-a-step", &["save_checkpoint=0"]),
    // 64 samples at once instead of one by one.
    (
        "cuda",
        "forward-per-sample",
        &["sample_by_sample=0.015625", "backward=0.015625"],
    ),
    // The card multiplies matrices about five times as fast in TF32.
    ("cuda", "fp32-gpt", &["*sgemm*=0.19", "*f32f32*=0.19"]),
    // In one layout, other kernels normalize and add. These are their times, by a recording of the
    // mended run, compared with those of the kernels that they replace.
    (
        "cuda",
        "layout-ping-pong",
        &[
            "*direct_copy*=0.14",
            "*batch_norm*=0.25",
            "*CUDAFunctor_add*=0.75",
            "*BinaryFunctor*=2.7",
        ],
    ),
    ("cuda", "loader-in-process", &["no data loading"]),
    ("cuda", "pageable-input", &["overlap copies"]),
    ("cuda", "sync-norms", &["norms_one_by_one=0"]),
    ("cuda", "tiny-kernels", &["CUDA graphs"]),
    ("cuda", "words-in-python", &["count_words=0"]),
];

fn planted(device: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/planted")
        .join(device)
}

/// Returns the measured times of the runs on a device, or `None` if there are no recordings.
fn truth(device: &str) -> Option<Value> {
    let text = std::fs::read_to_string(planted(device).join("truth.json")).ok()?;
    serde_json::from_str(&text).ok()
}

fn analysis(device: &str, name: &str) -> Analysis {
    let path = planted(device).join(format!("{name}.trace.json.gz"));
    Analysis::build(read_trace(&std::fs::read(path).unwrap()).unwrap())
}

fn changes(texts: &[&str]) -> Changes {
    let mut changes = Changes::default();
    for &text in texts {
        match text {
            "no data loading" => changes.no_data_loading = true,
            "overlap copies" => changes.overlap_copies = true,
            "CUDA graphs" => changes.cuda_graphs = true,
            scale => changes.scales.push(Changes::read_scale(scale).unwrap()),
        }
    }
    changes
}

fn ms(time: Nanos, steps: usize) -> f64 {
    time.0 as f64 / 1e6 / steps as f64
}

#[test]
fn a_replay_without_the_fault_gives_the_time_of_the_mended_run() {
    for (device, name, change) in MENDED {
        let Some(truth) = truth(device) else { return };
        let mended = truth[name]["mended_ms"].as_f64().unwrap();
        let prediction = Prediction::build(&analysis(device, name), &changes(change)).unwrap();
        let changed = ms(prediction.changed.total, prediction.numbers.len());
        let ratio = changed / mended;
        println!("{device} {name}: {changed:.2} ms, measured {mended:.2} ms, ratio {ratio:.2}");
        assert!((0.8..=1.2).contains(&ratio), "{device} {name} {ratio}");
    }
}

/// Runs in which single calls were much slower under the profiler: those that take memory, and
/// those that write a file.
const SLOWED: [&str; 2] = ["checkpoint-in-a-step", "empty-cache-each-step"];

#[test]
fn steps_without_the_profiler_take_about_as_long_as_measured() {
    for device in ["cpu", "cuda"] {
        let Some(truth) = truth(device) else { return };
        for (name, truth) in truth.as_object().unwrap() {
            let replay = Replay::build(&analysis(device, name)).unwrap();
            let steps = replay.steps().len();
            let unrecorded = ms(replay.unrecorded().total(), steps);
            let ratio = unrecorded / truth["step_ms"].as_f64().unwrap();
            println!("{device} {name}: {unrecorded:.2} ms, ratio {ratio:.2}");
            if !SLOWED.contains(&name.as_str()) {
                assert!((0.7..=1.2).contains(&ratio), "{device} {name} {ratio}");
            }
        }
    }
}

#[test]
fn a_step_that_looks_bound_by_the_cpu_under_the_profiler_is_bound_by_the_gpu() {
    if truth("cuda").is_none() {
        return;
    }
    for (name, bound) in [
        ("healthy-gpt", Bound::Gpu),
        ("layout-ping-pong", Bound::Gpu),
        ("fp32-gpt", Bound::Gpu),
        ("pageable-input", Bound::Gpu),
        ("tiny-kernels", Bound::Cpu),
        ("sync-norms", Bound::Cpu),
        ("loader-in-process", Bound::Cpu),
    ] {
        let analysis = analysis("cuda", name);
        let own = OwnCode::of(analysis.profile().metadata(), &[]);
        let path = CriticalPath::build(&analysis, &own, PathOptions::default());
        assert_eq!(path.bound_by, bound, "{name}");
    }
}

/// Figures of Holistic Trace Analysis 0.5.0 in microseconds, for the second run of an annotation: the
/// length of the path, and the device work on it.
///
/// Its path of the first trace leads over the last kernels (508 us), although they ended 235 us before
/// the synchronization began. That of the last one begins with the first operator of the step (2,401
/// us before its end) instead of the step itself.
const HTA: [(&str, &str, Option<f64>, Option<f64>); 3] = [
    ("hta-critical-simple-add", MEASURED, Some(241_724.0), None),
    (
        "hta-critical-alexnet",
        MEASURED,
        Some(35_834.0),
        Some(3_712.0),
    ),
    ("hta-event-sync", "ProfilerStep#100", None, Some(38.0)),
];

const MEASURED: &str = "[param|pytorch.model.alex_net|0|0|0|measure|forward]";

#[test]
fn the_path_agrees_with_hta() {
    for (name, annotation, length, work) in HTA {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../shared/traces")
            .join(format!("{name}.json.gz"));
        let Ok(bytes) = std::fs::read(path) else {
            return;
        };
        let profile = read_trace(&bytes).unwrap();
        let events = profile.events().iter();
        let mut runs = events.filter(|event| {
            event.category == Category::Annotation && profile.name(event) == annotation
        });
        let last = runs.next_back().unwrap();
        let cut = Cut {
            window: Some((last.start, last.end())),
            ..Cut::default()
        };
        let analysis = Analysis::build(slim(&profile, &cut).profile);
        let own = OwnCode::of(analysis.profile().metadata(), &[]);
        let options = PathOptions {
            timing: Timing::Recorded,
            ..PathOptions::default()
        };
        let path = CriticalPath::build(&analysis, &own, options);
        let micros = |time: Nanos| time.0 as f64 / 1e3;
        let ours = micros(path.split.total());
        let device = [PathKind::Kernel, PathKind::Copy].map(|kind| micros(path.split.time(kind)));
        println!("{name}: {ours} of {length:?}, on the device {device:?} of {work:?}");
        if let Some(length) = length {
            assert!((ours / length - 1.0).abs() < 0.03, "{name} {ours}");
        }
        if let Some(work) = work {
            let device: f64 = device.iter().sum();
            assert!(
                (device - work).abs() <= 0.01 * work + 1.0,
                "{name} {device}"
            );
        }
        assert_eq!(path.bound_by, Bound::Cpu, "{name}");
    }
}
