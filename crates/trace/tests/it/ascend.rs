//! Traces of Ascend NPUs: msprof-analyze's sample, and what its own tracks say of it.

use std::fs;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use mindprof_analyze::{Analysis, Correlation};
use mindprof_answers::{Advice, CriticalPath, OwnCode, PathOptions};
use mindprof_model::{Category, DeviceKind, EventId, Flags, Profile};
use mindprof_trace::{ReadOptions, Reading, read_trace, read_trace_file_with, write_trace};
use serde_json::Value;

/// Returns the path of a sample.
pub(crate) fn sample(name: &str) -> PathBuf {
    let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens/ascend");
    PathBuf::from(goldens).join(name)
}

fn trace_view() -> Reading {
    let path = sample("trace_view.json.gz");
    read_trace_file_with(&path, &ReadOptions::default()).unwrap()
}

/// Returns the number and the summed nanoseconds of the events that `is_wanted`.
fn sum(profile: &Profile, is_wanted: impl Fn(EventId) -> bool) -> (usize, u64) {
    let ids = (0..profile.events().len()).map(EventId::from_index);
    let wanted = ids.filter(|&id| is_wanted(id));
    let times = wanted.map(|id| profile.event(id).duration.0);
    times.fold((0, 0), |(count, sum), time| (count + 1, sum + time))
}

pub(crate) fn of_category(profile: &Profile, category: Category) -> (usize, u64) {
    sum(profile, |id| profile.event(id).category == category)
}

#[test]
fn tasks_of_an_npu_are_device_work() {
    let profile = trace_view().profile;
    let (kernels, time) = of_category(&profile, Category::Kernel);
    assert_eq!(kernels, 276);
    assert_eq!(time, 1_790_457, "each duration is rounded to a nanosecond");
    for event in profile.events() {
        let thread = profile.threads()[event.thread.index()];
        let on_device = event.category == Category::Kernel;
        assert_eq!(thread.device == DeviceKind::PrivateUse1, on_device);
        if on_device {
            assert_eq!((thread.process, thread.native), (0, 3));
        }
    }
}

/// The tracks "Computing" and "Free" are msprof's own sums of the same kernels.
#[test]
fn tracks_of_sums_are_hidden_and_agree_with_the_kernels() {
    let profile = trace_view().profile;
    let is_hidden = |id| profile.event(id).flags.contains(Flags::HIDDEN);
    let named = |name| {
        sum(&profile, |id| {
            is_hidden(id) && profile.name(profile.event(id)) == name
        })
    };
    let (computing, free) = (named("Computing"), named("Free"));
    assert_eq!(computing.0 + free.0, 547);
    // Copies are no computing: two kernels of 2190 ns together.
    let copies = sum(&profile, |id| {
        profile.name(profile.event(id)) == "MEMCPY_ASYNC"
    });
    let kernels = of_category(&profile, Category::Kernel);
    assert_eq!(copies.0, 2);
    assert!(
        kernels.1.abs_diff(copies.1 + computing.1) <= 276,
        "{kernels:?} {computing:?}"
    );
    let is_counted = |id| !is_hidden(id) && profile.name(profile.event(id)) == "Free";
    assert_eq!(sum(&profile, is_counted).0, 0);
}

#[test]
fn kernels_belong_to_the_operators_that_flows_lead_from() {
    let profile = trace_view().profile;
    let correlation = Correlation::build(&profile);
    let owner = |id| correlation.owner(id);
    let is_kernel = |id: EventId| profile.event(id).category == Category::Kernel;
    assert_eq!(
        sum(&profile, |id| is_kernel(id) && owner(id).is_some()).0,
        274
    );
    for index in 0..profile.events().len() {
        let id = EventId::from_index(index);
        let Some(owner) = owner(id).filter(|_| is_kernel(id)) else {
            continue;
        };
        let (kernel, owner) = (profile.event(id), profile.event(owner));
        // `aclnnMm_MatMulCommon_MatMulV2` was launched by `aclnnMm`.
        let name = profile.name(owner);
        if name == "aclnnMm" || name == "aclnnAddmm" {
            assert!(profile.name(kernel).starts_with(name), "{name}");
        }
    }
}

#[test]
fn calls_of_cann_lie_on_the_threads_that_made_them() {
    let reading = trace_view();
    let profile = &reading.profile;
    assert_eq!(of_category(profile, Category::Runtime).0, 382 + 148 + 148);
    let threads = profile.threads().iter();
    let cpu: Vec<u64> = threads
        .filter(|thread| thread.device == DeviceKind::Cpu && thread.process == 437_675)
        .map(|thread| thread.native)
        .collect();
    assert_eq!(cpu.len(), 4, "{cpu:?}");
    assert_eq!(of_category(profile, Category::Annotation).0, 5);
    assert!(reading.repairs.is_empty(), "{:?}", reading.repairs);
    assert!(reading.unknown_categories.is_empty());
    assert!(reading.set_aside.is_empty());
}

#[test]
fn a_trace_that_is_written_again_says_the_same() {
    let profile = trace_view().profile;
    let mut json = Vec::new();
    write_trace(&profile, "trace.json", &mut json).unwrap();
    let again = read_trace(&json).unwrap();
    for category in [
        Category::Kernel,
        Category::Runtime,
        Category::Operator,
        Category::Annotation,
        Category::Other,
    ] {
        assert_eq!(
            of_category(&again, category),
            of_category(&profile, category)
        );
    }
    let hidden = |profile: &Profile| {
        sum(profile, |id| {
            profile.event(id).flags.contains(Flags::HIDDEN)
        })
    };
    assert_eq!(hidden(&again), hidden(&profile));
    let owners = |profile: &Profile| {
        let correlation = Correlation::build(profile);
        sum(profile, |id| correlation.owner(id).is_some())
    };
    assert_eq!(owners(&again).0, owners(&profile).0);
}

/// A thread without operators launches the kernels of this trace, and compiles for half of the step.
#[test]
fn a_replay_follows_the_queue_that_launches_kernels() {
    let analysis = Analysis::build(trace_view().profile);
    let advice = Advice::build(&analysis, &OwnCode::default());
    let recorded = advice.overhead.recorded.0;
    assert_eq!(recorded / 10_000, 1_409, "{recorded}");
    let replayed = advice.overhead.replayed.0;
    assert_eq!(replayed / 100_000, 139, "{replayed}");
    assert!(!advice.is_doubtful);
    let missing = advice
        .unknown
        .iter()
        .filter(|unknown| unknown.missing.contains("queue"));
    assert_eq!(missing.count(), 0);
}

/// Without flows, kernels wait for no launch.
#[test]
fn a_replay_that_takes_another_time_than_the_recording_prices_nothing() {
    let packed = fs::File::open(sample("trace_view.json.gz")).unwrap();
    let mut events: Vec<Value> = serde_json::from_reader(GzDecoder::new(packed)).unwrap();
    events.retain(|event| !matches!(event["ph"].as_str(), Some("s" | "t" | "f")));
    let text = serde_json::to_vec(&events).unwrap();
    let analysis = Analysis::build(read_trace(&text).unwrap());
    let own = OwnCode::default();
    let advice = Advice::build(&analysis, &own);
    let overhead = advice.overhead;
    assert!(advice.is_doubtful, "{overhead:?}");
    assert_eq!(overhead.recorded.0 / 10_000, 1_409, "{overhead:?}");
    assert!(overhead.replayed.0 < 10_000_000, "{overhead:?}");
    assert!(advice.findings.iter().all(|finding| finding.share <= 0.0));
    let mut unknown = advice.unknown.iter();
    assert!(unknown.any(|unknown| unknown.missing.contains("than the recording")));
    let path = CriticalPath::build(&analysis, &own, PathOptions::default());
    assert!(path.is_doubtful && path.recorded == overhead.recorded);
    assert!(path.operators.iter().all(|row| row.saves.is_none()));
}
