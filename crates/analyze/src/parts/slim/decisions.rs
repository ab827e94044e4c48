//! The decision for each event of a profile: kept, or removed for a reason.

use mindprof_model::{Category, DeviceKind, Event, EventId, Profile, ThreadId};
use rustc_hash::FxHashMap;

use super::cut::{Cut, CutReport};
use crate::links::correlate::Correlation;

/// The decision for one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// Kept, and clipped at the edges of the window.
    Kept,
    /// Kept without clipping: its launch lies in the window and on a kept thread, or a kernel in it
    /// is kept.
    Whole,
    Outside,
    OtherThread,
    TooShort,
    TooMany,
}

/// The decision for each event of a profile.
///
/// If its launch is known, device work is judged by the time and thread of the launch and by its
/// own duration, so all decisions are made before anything is copied.
pub(super) struct Decisions {
    decisions: Vec<Decision>,
}

impl Decisions {
    /// Decides by window, threads and duration. CPU events are decided first, and device work
    /// follows them.
    pub(super) fn decide(profile: &Profile, cut: &Cut) -> Self {
        let events = profile.events();
        let mut decisions: Vec<Decision> = events.iter().map(|event| alone(event, cut)).collect();
        if cut.window.is_some() || cut.within.is_some() || cut.threads.is_some() {
            follow_launches(profile, cut, &mut decisions);
            keep_ranges_around_kernels(profile, cut, &mut decisions);
        }
        Self { decisions }
    }

    pub(super) fn is_kept(&self, id: EventId) -> bool {
        matches!(self.decisions[id.index()], Decision::Kept | Decision::Whole)
    }

    pub(super) fn is_whole(&self, id: EventId) -> bool {
        self.decisions[id.index()] == Decision::Whole
    }

    pub(super) fn drop_for_limit(&mut self, id: EventId) {
        self.decisions[id.index()] = Decision::TooMany;
    }

    pub(super) fn report(&self, profile: &Profile) -> CutReport {
        let count = |decision| {
            self.decisions
                .iter()
                .filter(|&&found| found == decision)
                .count() as u64
        };
        CutReport {
            events: self.decisions.len() as u64,
            kept: count(Decision::Kept) + count(Decision::Whole),
            outside: count(Decision::Outside),
            other_threads: count(Decision::OtherThread),
            too_short: count(Decision::TooShort),
            too_many: count(Decision::TooMany),
            memory: profile.memory().len() as u64,
            ..CutReport::default()
        }
    }
}

/// Returns the decision for an event by its own time, thread and duration.
fn alone(event: &Event, cut: &Cut) -> Decision {
    let is_outside = cut.window.is_some_and(|(begin, end)| {
        // An instant at the start of the window is inside.
        event.start >= end || (event.end() <= begin && event.start < begin)
    });
    if is_outside || !cut.is_within(event.start) {
        return Decision::Outside;
    }
    let is_other = |threads: &Vec<ThreadId>| !threads.contains(&event.thread);
    if cut.threads.as_ref().is_some_and(is_other) {
        return Decision::OtherThread;
    }
    if event.duration < cut.shortest {
        return Decision::TooShort;
    }
    Decision::Kept
}

/// Lets device work follow the runtime call that launched it, or else its scope, if one is known.
fn follow_launches(profile: &Profile, cut: &Cut, decisions: &mut [Decision]) {
    if !profile.has_links() {
        return;
    }
    let owners = Correlation::build(profile);
    let correlation = |id: EventId| profile.links(id).map_or(0, |links| links.correlation);
    let of_category = |category| {
        let ids = (0..profile.events().len()).map(EventId::from_index);
        ids.filter(move |&id| profile.event(id).category == category)
    };
    let calls: FxHashMap<u32, EventId> = of_category(Category::Runtime)
        .map(|id| (correlation(id), id))
        .filter(|&(correlation, _)| correlation != 0)
        .collect();
    // Waits such as `cuda_sync` are device events of category `Other`, and have the correlation id
    // of the runtime call that waited.
    let waits = of_category(Category::Other).filter(|&id| {
        let thread = profile.event(id).thread;
        profile.threads()[thread.index()].device != DeviceKind::Cpu
    });
    for id in of_category(Category::Kernel).chain(waits) {
        let call = calls.get(&correlation(id)).copied();
        let Some(launch) = call.or_else(|| owners.owner(id)) else {
            continue;
        };
        decisions[id.index()] = match alone(profile.event(launch), cut) {
            // A short launch may start long work, so only the duration of the work counts.
            Decision::Kept | Decision::TooShort if profile.event(id).duration < cut.shortest => {
                Decision::TooShort
            }
            Decision::Kept | Decision::TooShort => Decision::Whole,
            other => other,
        };
    }
}

/// Keeps a long enough device range whole if a kernel that starts in it is kept, and drops it as
/// `Outside` if all of them are removed. Ranges without kernels keep their own decisions.
fn keep_ranges_around_kernels(profile: &Profile, cut: &Cut, decisions: &mut [Decision]) {
    // By stream, the kernels in start order and whether each is kept.
    let mut kernels: FxHashMap<ThreadId, Vec<(EventId, bool)>> = FxHashMap::default();
    for (index, event) in profile.events().iter().enumerate() {
        if event.category == Category::Kernel {
            let is_kept = matches!(decisions[index], Decision::Kept | Decision::Whole);
            let of_stream = kernels.entry(event.thread).or_default();
            of_stream.push((EventId::from_index(index), is_kept));
        }
    }
    for (index, range) in profile.events().iter().enumerate() {
        let Some(of_stream) = kernels.get(&range.thread) else {
            continue;
        };
        if range.category != Category::DeviceAnnotation || range.duration < cut.shortest {
            continue;
        }
        let start = |&(id, _): &(EventId, bool)| profile.event(id).start;
        let begin = of_stream.partition_point(|kernel| start(kernel) < range.start);
        let end = of_stream.partition_point(|kernel| start(kernel) < range.end());
        let inside = &of_stream[begin..end];
        if inside.iter().any(|&(_, is_kept)| is_kept) {
            decisions[index] = Decision::Whole;
        } else if !inside.is_empty() && decisions[index] == Decision::Kept {
            decisions[index] = Decision::Outside;
        }
    }
}
