//! Cutting of profiles: to a window of time, to some threads, to the longer events.
//!
//! The result is a complete profile again, with a report of how much was removed and why.

use std::cmp::Reverse;

use mindprof_model::{
    Event, EventId, Flags, MemoryRecord, Nanos, Part, Profile, Selection, ThreadId, UnknownEvent,
};

use self::decisions::Decisions;

mod cut;
mod decisions;
#[cfg(test)]
mod tests;

pub use cut::{Cut, CutReport};

/// The metadata key under which a trace records what was cut from it.
pub const SLIM_KEY: &str = "mindprof_slim";

/// A profile that was cut, and the report of what was removed.
///
/// [`slim`] returns it. The report is part of the result, so that a caller can show that the smaller
/// profile is not the whole recording.
#[derive(Clone, Debug)]
pub struct Slimmed {
    /// The remaining profile.
    pub profile: Profile,
    /// The counts of what was kept and removed.
    pub report: CutReport,
}

/// Cuts a profile. The start of the window becomes time zero.
///
/// ```text
/// window           |===========|
/// outer        |-------------------|     kept from edge to edge, and marked as unfinished
/// inner          |-------|               kept from the edge on
/// later                          |---|   removed
/// kernel                     |------|    kept as it is, because its launch was kept
/// ```
///
/// # Panics
/// Never: the copy has all tables of the profile, so every id stays valid.
pub fn slim(profile: &Profile, cut: &Cut) -> Slimmed {
    let mut decisions = Decisions::decide(profile, cut);
    if let Some(most) = cut.most_events {
        decisions.keep_longest(profile, most);
    }
    let report = decisions.report(profile);
    let begin = cut.window.map_or(Nanos::ZERO, |(begin, _)| begin);
    let mut keep = Keep {
        decisions,
        cut,
        report,
    };
    let mut part = Part::selected(profile, begin, &mut keep);
    if let Some((_, end)) = cut.window {
        part.span = end.min(profile.span()).saturating_sub(begin);
    }
    Slimmed {
        profile: part
            .into_profile()
            .expect("the selection has all tables of the profile"),
        report: keep.report,
    }
}

/// Selects what the decisions keep, and counts it.
struct Keep<'a> {
    decisions: Decisions,
    cut: &'a Cut,
    report: CutReport,
}

impl Keep<'_> {
    /// Returns whether a time on a thread is within the window and threads of the cut.
    fn is_within(&self, time: Nanos, thread: ThreadId) -> bool {
        let in_window = |(begin, end)| (begin..end).contains(&time);
        let is_of = |threads: &Vec<ThreadId>| threads.contains(&thread);
        self.cut.window.is_none_or(in_window)
            && self.cut.is_within(time)
            && self.cut.threads.as_ref().is_none_or(is_of)
    }
}

impl Selection for Keep<'_> {
    fn event(&mut self, id: EventId, event: &Event) -> Option<Event> {
        if !self.decisions.is_kept(id) {
            return None;
        }
        let (event, is_clipped) = self.decisions.clipped(event, id, self.cut);
        self.report.clipped += u64::from(is_clipped);
        Some(event)
    }

    fn keeps_memory(&mut self, record: &MemoryRecord) -> bool {
        let is_kept = !self.cut.without_memory && self.is_within(record.time, record.thread);
        self.report.memory_kept += u64::from(is_kept);
        is_kept
    }

    fn keeps_unknown(&mut self, record: &UnknownEvent) -> bool {
        let time = Nanos(record.time_ns.max(0) as u64);
        let is_kept = !self.cut.without_foreign && self.is_within(time, record.thread);
        self.report.foreign += 1;
        self.report.foreign_kept += u64::from(is_kept);
        is_kept
    }
}

impl Decisions {
    /// Returns the part of an event that is kept, and whether the window clips it.
    fn clipped(&self, event: &Event, id: EventId, cut: &Cut) -> (Event, bool) {
        let mut event = *event;
        let Some((begin, end)) = cut.window.filter(|_| !self.is_whole(id)) else {
            return (event, false);
        };
        let (start, stop) = (event.start.max(begin), event.end().min(end));
        let is_clipped = start > event.start || stop < event.end();
        if stop < event.end() {
            event.flags = event.flags.union(Flags::UNFINISHED);
        }
        event.start = start;
        event.duration = stop.saturating_sub(start);
        (event, is_clipped)
    }

    /// Removes all but the longest events. Among events of equal length the earlier ones are kept.
    fn keep_longest(&mut self, profile: &Profile, most: usize) {
        let mut kept: Vec<EventId> = (0..profile.events().len())
            .map(EventId::from_index)
            .filter(|&id| self.is_kept(id))
            .collect();
        if kept.len() <= most {
            return;
        }
        kept.sort_by_key(|&id| Reverse(profile.event(id).duration));
        for &id in &kept[most..] {
            self.drop_for_limit(id);
        }
    }
}
