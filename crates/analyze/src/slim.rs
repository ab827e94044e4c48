//! A smaller profile out of a larger one: a stretch of time, some threads, the longer events.
//!
//! What is left is a whole profile again, together with the counts of what was left out and why.

use std::cmp::Reverse;

use mindprof_model::{
    Event, EventId, ExtraKind, Flags, ForeignRecord, Links, LossCause, MemoryRecord, Nanos,
    Profile, ProfileBuilder, RoleRecord, ThreadId,
};

use self::fate::Fates;

mod fate;
#[cfg(test)]
mod tests;

/// What is kept of a profile. The default keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// From when to when, since the profile's reference time. Events that cross an edge are cut
    /// there.
    pub window: Option<(Nanos, Nanos)>,
    /// These threads, and what they asked devices for.
    pub threads: Option<Vec<ThreadId>>,
    /// Events that took at least this long.
    pub shortest: Nanos,
    /// At most this many events: the longest ones.
    pub most_events: Option<usize>,
    /// No memory records.
    pub without_memory: bool,
    /// No records of foreign kinds, such as counters.
    pub without_foreign: bool,
}

/// How many events were left out, by the first reason that there was, and what else changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutReport {
    /// How many events there were.
    pub events: u64,
    /// How many were kept.
    pub kept: u64,
    /// How many lie outside of the window.
    pub outside: u64,
    /// How many are of other threads.
    pub other_threads: u64,
    /// How many are too short.
    pub too_short: u64,
    /// How many are not among the longest.
    pub too_many: u64,
    /// How many of those that were kept cross an edge of the window and end there.
    pub clipped: u64,
    /// How many memory records there were.
    pub memory: u64,
    /// How many of them were kept.
    pub memory_kept: u64,
    /// How many records of foreign kinds there were.
    pub foreign: u64,
    /// How many of them were kept.
    pub foreign_kept: u64,
}

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
    let mut fates = Fates::decide(profile, cut);
    if let Some(most) = cut.most_events {
        fates.keep_longest(profile, most);
    }
    let mut report = fates.report(profile);
    let begin = cut.window.map_or(Nanos::ZERO, |(begin, _)| begin);
    let mut copy = Copy::new(profile, begin);
    copy.builder.span = match cut.window {
        Some((_, end)) => end.min(profile.span()).saturating_sub(begin),
        None => profile.span(),
    };
    for index in 0..profile.events().len() {
        let id = EventId::from_index(index);
        if fates.is_kept(id) {
            let (event, is_clipped) = fates.clipped(profile.event(id), id, cut);
            report.clipped += u64::from(is_clipped);
            copy.add_event(event, id);
        }
    }
    for (index, record) in profile.memory().iter().enumerate() {
        if is_memory_kept(&record, cut) {
            copy.add_memory(record, index, report.memory_kept as usize);
            report.memory_kept += 1;
        }
    }
    report.foreign = profile.extras().records().len() as u64;
    for record in profile.extras().records() {
        if is_foreign_kept(record, cut) {
            report.foreign_kept += 1;
            copy.add_foreign(*record);
        }
    }
    for record in profile.roles() {
        // What a tensor is to its program holds for its memory, whenever it was said.
        copy.add_role(*record);
    }
    Slimmed {
        profile: copy
            .builder
            .build()
            .expect("what is kept names what the profile holds"),
        report,
    }
}

fn is_memory_kept(record: &MemoryRecord, cut: &Cut) -> bool {
    let in_window = |(begin, end)| (begin..end).contains(&record.time);
    let of_thread = |threads: &Vec<ThreadId>| threads.contains(&record.thread);
    !cut.without_memory
        && cut.window.is_none_or(in_window)
        && cut.threads.as_ref().is_none_or(of_thread)
}

fn is_foreign_kept(record: &ForeignRecord, cut: &Cut) -> bool {
    let time = Nanos(record.time_ns.max(0) as u64);
    let in_window = |(begin, end)| (begin..end).contains(&time);
    let of_thread = |threads: &Vec<ThreadId>| threads.contains(&record.thread);
    !cut.without_foreign
        && cut.window.is_none_or(in_window)
        && cut.threads.as_ref().is_none_or(of_thread)
}

/// The new profile as it grows. Threads are numbered anew, so that those without events are gone.
struct Copy<'a> {
    profile: &'a Profile,
    builder: ProfileBuilder,
    begin: Nanos,
    threads: Vec<Option<ThreadId>>,
}

impl<'a> Copy<'a> {
    fn new(profile: &'a Profile, begin: Nanos) -> Self {
        let mut builder = ProfileBuilder::new();
        builder.reference_unix_ns = profile.reference_unix_ns().saturating_add(begin.0);
        builder.strings = profile.strings().clone();
        builder.inputs = profile.inputs().clone();
        builder.stacks = profile.stacks().clone();
        builder.metadata = profile.metadata().clone();
        builder.extras.texts = profile.extras().texts.clone();
        for cause in LossCause::ALL {
            builder.add_loss(cause, profile.loss().count(cause));
        }
        Self {
            profile,
            builder,
            begin,
            threads: vec![None; profile.threads().len()],
        }
    }

    fn add_event(&mut self, mut event: Event, id: EventId) {
        event.start = event.start.saturating_sub(self.begin);
        event.thread = self.thread(event.thread);
        let addresses = self.profile.storages().of(id.index());
        if !addresses.is_empty() {
            self.builder.set_storages(self.builder.len(), addresses);
        }
        for kind in [ExtraKind::Category, ExtraKind::Fields, ExtraKind::Arguments] {
            self.copy_extra(kind, id.index(), self.builder.len());
        }
        let links = self.profile.links(id);
        let Some(links) = links.filter(|links| *links != Links::default()) else {
            self.builder.add_event(event);
            return;
        };
        let mut moved = links;
        let forward = links.forward_thread().map(|thread| self.thread(thread));
        moved.set_forward_thread(forward);
        self.builder.add_linked_event(event, moved);
    }

    fn add_role(&mut self, mut record: RoleRecord) {
        record.time = record.time.saturating_sub(self.begin);
        record.thread = self.thread(record.thread);
        self.builder.add_role(record);
    }

    fn copy_extra(&mut self, kind: ExtraKind, from: usize, to: usize) {
        if let Some(text) = self.profile.extras().of(kind, from) {
            self.builder.extras.set(kind, to, text);
        }
    }

    fn add_foreign(&mut self, mut record: ForeignRecord) {
        record.time_ns = record.time_ns.saturating_sub_unsigned(self.begin.0);
        record.thread = self.thread(record.thread);
        self.builder.extras.add_record(record);
    }

    fn add_memory(&mut self, mut record: MemoryRecord, from: usize, to: usize) {
        self.copy_extra(ExtraKind::MemoryArguments, from, to);
        record.time = record.time.saturating_sub(self.begin);
        record.thread = self.thread(record.thread);
        self.builder.add_memory(record);
    }

    fn thread(&mut self, old: ThreadId) -> ThreadId {
        if let Some(new) = self.threads[old.index()] {
            return new;
        }
        let new = self.builder.add_thread(self.profile.threads()[old.index()]);
        self.threads[old.index()] = Some(new);
        self.copy_extra(ExtraKind::Track, old.index(), new.index());
        new
    }
}

impl Fates {
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
