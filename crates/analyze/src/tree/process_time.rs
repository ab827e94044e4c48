//! The time that a process spent inside recorded events, as opposed to between them.

use mindprof_model::{DeviceKind, EventId, Nanos};
use rustc_hash::FxHashSet;

use crate::analysis::Analysis;

/// Returns the CPU time of a process that recorded events cover, ignoring events whose name is in
/// `without`. Nested events count once; the times of several threads add up.
///
/// ```text
/// left out   |-----------------------|
/// events        |-----|    |--|
///                |--|
/// counted       |-----|    |--|
/// ```
pub fn process_time(analysis: &Analysis, process: u64, without: &[&str]) -> Nanos {
    let profile = analysis.profile();
    let without: FxHashSet<&str> = without.iter().copied().collect();
    let is_left_out = |name: &str| without.contains(name);
    let left_out: Vec<bool> = profile.strings().iter().map(is_left_out).collect();
    let is_here = |thread: usize| {
        let thread = &profile.threads()[thread];
        thread.device == DeviceKind::Cpu && thread.process == process
    };
    // Parents precede their children, so the parent's entry is final.
    let mut is_covered = vec![false; profile.events().len()];
    let mut time = Nanos::ZERO;
    for (index, event) in profile.events().iter().enumerate() {
        let parent = analysis.tree().parent(EventId::from_index(index));
        is_covered[index] = parent.is_some_and(|parent| is_covered[parent.index()]);
        if left_out[event.name.index()] || is_covered[index] || !is_here(event.thread.index()) {
            continue;
        }
        is_covered[index] = true;
        time = time + event.duration;
    }
    time
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    // step    |---------------------|     0..100, left out
    // outer      |---------|  |-|         10..60, 70..80
    // inner         |---|                 20..50
    #[test]
    fn nested_events_count_once() {
        let profile = Timeline::draw(|time| {
            time.scope("step", |time| {
                time.idle(10);
                time.scope("outer", |time| {
                    time.idle(10);
                    time.scope("inner", |time| time.idle(30));
                    time.idle(10);
                });
                time.idle(10);
                time.scope("outer", |time| time.idle(10));
                time.idle(20);
            });
        });
        let process = profile.threads()[0].process;
        let analysis = Analysis::build(profile);
        assert_eq!(process_time(&analysis, process, &["step"]), Nanos(60));
        assert_eq!(process_time(&analysis, process, &[]), Nanos(100));
        assert_eq!(process_time(&analysis, process + 1, &[]), Nanos::ZERO);
    }
}
