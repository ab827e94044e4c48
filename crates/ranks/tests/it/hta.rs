//! Definitions of HTA's analyses, computed here in the plain way, on its own sampled traces.

use std::path::{Path, PathBuf};

use mindprof_model::{Category, DeviceKind, Profile};
use mindprof_ranks::{JobAnswer, Ranks};
use mindprof_trace::read_trace_file;

use crate::goldens::summarize;

/// Returns the traces, or `None` if they are not there.
fn traces() -> Option<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let paths = [0, 1].map(|rank| root.join(format!("hta-sampled-rank{rank}.json.gz")));
    if paths.iter().all(|path| path.exists()) {
        return Some(paths.to_vec());
    }
    eprintln!("skipped: the traces of HTA are not in ../shared/traces");
    None
}

/// Returns the length of the union of some times.
fn union(mut times: Vec<(u64, u64)>) -> u64 {
    times.sort_unstable();
    let (mut length, mut until) = (0, 0);
    for (begin, end) in times {
        length += end.saturating_sub(begin.max(until));
        until = until.max(end);
    }
    length
}

/// Returns the device work of a profile: its times, and whether HTA calls it communication or memory.
fn work(profile: &Profile) -> Vec<(u64, u64, bool, bool)> {
    let events = profile.events().iter().filter(|event| {
        let thread = profile.threads()[event.thread.index()];
        event.category == Category::Kernel && thread.device != DeviceKind::Cpu
    });
    let work = events.map(|event| {
        let name = profile.name(event);
        let is_communication = name.starts_with("nccl");
        let is_memory = name.starts_with("Memcpy") || name.starts_with("Memset");
        (event.start.0, event.end().0, is_communication, is_memory)
    });
    work.collect()
}

#[test]
fn temporal_breakdown_and_overlap_are_those_of_hta() {
    let Some(paths) = traces() else { return };
    let parts = paths.iter().map(|path| Ranks::from(summarize(path)));
    let answer = JobAnswer::build(&Ranks::merge(parts));
    assert_eq!(answer.roster.ranks, "0-1");
    assert_eq!(
        (answer.roster.world_size, answer.roster.missing_count),
        (Some(128), 126)
    );
    for (path, rank) in paths.iter().zip(&answer.devices.ranks) {
        let work = work(&read_trace_file(path).unwrap());
        let times = |is_counted: &dyn Fn(bool, bool) -> bool| {
            let counted = work.iter().filter(|work| is_counted(work.2, work.3));
            union(counted.map(|work| (work.0, work.1)).collect())
        };
        let first = work.iter().map(|work| work.0).min().unwrap();
        let last = work.iter().map(|work| work.1).max().unwrap();
        let (span, busy) = (last - first, times(&|_, _| true));
        let compute = times(&|is_communication, is_memory| !is_communication && !is_memory);
        let communication = times(&|is_communication, _| is_communication);
        let either = times(&|_, is_memory| !is_memory);
        let found = &rank.times;
        assert_eq!((found.span.0, found.idle.0), (span, span - busy));
        assert_eq!(
            (found.compute.0, found.not_compute.0),
            (compute, busy - compute)
        );
        assert_eq!(found.communication.0, communication);
        assert_eq!(found.exposed.0, either - compute);
    }
    // These traces name no process group, so nothing is matched and no claim is made of it.
    assert!(answer.communication.rows.is_empty());
    assert!(answer.communication.without_group > 0);
    assert!(
        answer
            .findings
            .unknown
            .iter()
            .any(|unknown| unknown.rule == "poor-overlap")
    );
}
