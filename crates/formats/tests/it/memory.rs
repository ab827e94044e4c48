//! Compares the memory timeline of torch's own traces with the one that torch exported.
//!
//! A trace has the memory records of its window, but not the tensors that operators were given. So
//! it has neither the categories of memory nor the blocks that live through the whole window.

use mindprof_analyze::{Analysis, MemoryCategory, MemoryPlace};
use mindprof_formats::{MemoryPoints, memory_device};
use mindprof_trace::read_trace_file;

use crate::corpus::Session;

/// Returns the times and totals that torch wrote for a session.
fn torchs(session: Session, device: &str) -> Vec<(u64, i64)> {
    let value = session.memory(device);
    let times = value[0].as_array().unwrap().iter();
    let sizes = value[1].as_array().unwrap().iter();
    times
        .zip(sizes)
        .map(|(time, sizes)| {
            let sizes = sizes.as_array().unwrap().iter();
            let total = sizes.map(|bytes| bytes.as_i64().unwrap()).sum();
            (time.as_u64().unwrap(), total)
        })
        .collect()
}

/// Returns the memory of a device in the one process that has some, or no points if none has.
fn place(analysis: &Analysis, name: &str) -> MemoryPlace {
    let device = memory_device(name).unwrap();
    let places = analysis.memory_timeline().places();
    let mut places = places.into_iter().filter(|place| place.device == device);
    let place = places.next();
    assert_eq!(places.next(), None);
    place.unwrap_or(MemoryPlace { process: 0, device })
}

/// Returns the total at a time, which is that of the last point that is not later.
fn total_at(points: &MemoryPoints, time: u64) -> i64 {
    let next = points.times.partition_point(|&point| point <= time);
    let last = next.checked_sub(1).map(|last| points.bytes[last]);
    last.unwrap_or_default().iter().sum()
}

#[test]
fn a_trace_gives_torchs_totals_at_torchs_times() {
    let mut devices = 0;
    for session in Session::ALL {
        if !session.name.ends_with("full") {
            continue;
        }
        let analysis = Analysis::build(read_trace_file(&session.trace_path()).unwrap());
        for name in ["cpu", "cuda:0"] {
            if session.host.starts_with("cpu") && name != "cpu" {
                continue;
            }
            let ours = MemoryPoints::build(&analysis, place(&analysis, name));
            let torchs = torchs(session, name);
            devices += 1;
            // Only torch's totals include blocks that live through the window.
            let lasting = torchs
                .last()
                .map_or(0, |&(time, total)| total - total_at(&ours, time + 1));
            for &(time, total) in torchs.iter().skip(1) {
                // torch divides times as floats, which rounds some of them to the next microsecond.
                let mut near = [time - 1, time, time + 1]
                    .into_iter()
                    .map(|time| total_at(&ours, time) + lasting);
                assert!(
                    near.any(|near| near == total) || is_within_a_microsecond(&torchs, time),
                    "{session:?} {name} at {time}: torch has {total}, lasting {lasting}"
                );
            }
            let peak = torchs.iter().map(|(_, total)| *total).max().unwrap_or(0);
            let found = ours.bytes.iter().map(|bytes| bytes.iter().sum::<i64>());
            let found = found.max().map_or(0, |found| found + lasting);
            assert_eq!(found, peak, "{session:?} {name}: the peak");
        }
    }
    assert_eq!(devices, 6);
}

/// Returns whether torch has another point in the microsecond before or after: what falls into
/// which may differ.
fn is_within_a_microsecond(points: &[(u64, i64)], time: u64) -> bool {
    let others = points.iter().filter(|(other, _)| *other != time);
    let mut distances = others.map(|(other, _)| other.abs_diff(time));
    distances.any(|distance| distance <= 1)
}

#[test]
fn what_a_trace_does_not_tell_is_unknown() {
    let session = Session::ALL
        .into_iter()
        .find(|session| session.name == "gpt-full");
    let path = session.unwrap().trace_path();
    let analysis = Analysis::build(read_trace_file(&path).unwrap());
    let changes = analysis.memory_timeline().changes();
    assert!(changes.len() > 700);
    assert!(
        changes
            .iter()
            .all(|change| change.after == MemoryCategory::Unknown)
    );
}

#[test]
fn the_peak_of_a_trace_is_held_by_operators_with_stacks() {
    let session = Session::ALL
        .into_iter()
        .find(|session| session.name == "gpt-full");
    let path = session.unwrap().trace_path();
    let analysis = Analysis::build(read_trace_file(&path).unwrap());
    let place = place(&analysis, "cuda:0");
    let peak = analysis.memory_timeline().peak(&analysis, place);
    let largest = peak.holders[0];
    let strings = analysis.profile().strings();
    assert_eq!(
        strings.text(largest.owner.unwrap()),
        "aten::cross_entropy_loss"
    );
    let mut frames = analysis.profile().stacks().frames(largest.stack);
    let is_call = |frame: &str| frame.starts_with("record.py(78)");
    assert!(frames.any(|frame| is_call(strings.text(frame))));
}
