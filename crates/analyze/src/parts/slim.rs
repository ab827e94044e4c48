//! A smaller profile out of a larger one: a stretch of time, some threads, the longer events.
//!
//! What is left is a whole profile again, together with the counts of what was left out and why.

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

/// A profile that was cut, and what was left out.
#[derive(Clone, Debug)]
pub struct Slimmed {
    /// What was kept.
    pub profile: Profile,
    /// What was not.
    pub report: CutReport,
}

/// Cuts a profile. Time zero becomes the start of the window.
///
/// ```text
/// window           |===========|
/// outer        |-------------------|     kept from edge to edge, and marked as unfinished
/// inner          |-------|               kept from the edge on
/// later                          |---|   left out
/// kernel                     |------|    kept as it is, for what asked for it was kept
/// ```
///
/// # Panics
/// Never: what is kept names what the profile holds.
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
            .expect("what is kept names what the profile holds"),
        report: keep.report,
    }
}

/// Keeps what was decided, and counts it.
struct Keep<'a> {
    decisions: Decisions,
    cut: &'a Cut,
    report: CutReport,
}

impl Keep<'_> {
    /// Returns whether something of a moment on a thread lies within the cut.
    fn is_within(&self, time: Nanos, thread: ThreadId) -> bool {
        let in_window = |(begin, end)| (begin..end).contains(&time);
        let is_of = |threads: &Vec<ThreadId>| threads.contains(&thread);
        self.cut.window.is_none_or(in_window) && self.cut.threads.as_ref().is_none_or(is_of)
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
    /// Returns an event as it is kept, and whether it ends or begins at an edge of the window.
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

    /// Leaves out all but the longest; of equals the earlier ones stay.
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
            self.leave_out_for_number(id);
        }
    }
}
