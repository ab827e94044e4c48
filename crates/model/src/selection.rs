//! Selections: copies of a subset of a profile.

use crate::{
    Event, EventId, ForwardThread, Links, MemoryRecord, Nanos, Part, PassthroughKind, Profile,
    ThreadId, UnknownEvent,
};

/// Chooses the events and records of a profile that a copy keeps. The default methods keep
/// everything, so an implementor only overrides what it filters; [`Part::selected`] does the
/// copying.
pub trait Selection {
    /// Returns an event as the copy keeps it, or `None` to drop it.
    fn event(&mut self, _id: EventId, event: &Event) -> Option<Event> {
        Some(*event)
    }

    /// Returns whether to keep a memory record.
    fn keeps_memory(&mut self, _record: &MemoryRecord) -> bool {
        true
    }

    /// Returns whether to keep an event of an unknown kind.
    fn keeps_unknown(&mut self, _record: &UnknownEvent) -> bool {
        true
    }
}

impl Part {
    /// Copies a selection of a profile. `begin` becomes time zero, and events that started earlier
    /// start there. Threads without events or records are dropped. All roles of tensors are kept,
    /// since they describe memory whenever they were recorded.
    pub fn selected(profile: &Profile, begin: Nanos, selection: &mut impl Selection) -> Self {
        let mut copy = Self {
            rank: profile.contents.rank,
            reference_unix_ns: profile.reference_unix_ns().saturating_add(begin.0),
            span: profile.span().saturating_sub(begin),
            strings: profile.strings().clone(),
            inputs: profile.inputs().clone(),
            stacks: profile.stacks().clone(),
            metadata: profile.metadata().clone(),
            threads: profile.threads().to_vec(),
            loss: *profile.loss(),
            ..Self::default()
        };
        copy.passthrough.texts = profile.passthrough().texts.clone();
        copy.copy_events(profile, begin, selection);
        copy.copy_memory(profile, begin, selection);
        for record in profile.passthrough().unknown_events() {
            if selection.keeps_unknown(record) {
                let mut record = *record;
                record.time_ns = record.time_ns.saturating_sub_unsigned(begin.0);
                copy.passthrough.add_unknown_event(record);
            }
        }
        for record in profile.roles() {
            let mut record = *record;
            record.time = record.time.saturating_sub(begin);
            copy.add_role(record);
        }
        for (index, text) in profile.passthrough().rows(PassthroughKind::Track) {
            copy.passthrough.set(PassthroughKind::Track, index, text);
        }
        copy.drop_unused_threads();
        copy
    }

    fn copy_events(&mut self, profile: &Profile, begin: Nanos, selection: &mut impl Selection) {
        let mut passthrough =
            PassthroughKind::OF_EVENTS.map(|kind| (kind, profile.passthrough().walk(kind)));
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            let Some(mut event) = selection.event(id, event) else {
                continue;
            };
            event.start = event.start.saturating_sub(begin);
            let place = self.len();
            let addresses = profile.storages().words(index);
            if !addresses.is_empty() {
                self.set_storages(place, addresses);
            }
            if let Some((tensors, addresses)) = profile.results().of(index) {
                self.set_results(place, tensors, addresses);
            }
            for (kind, walk) in &mut passthrough {
                if let Some(text) = walk.at(index) {
                    self.passthrough.set(*kind, place, text);
                }
            }
            match profile.links(id) {
                Some(links) if links != Links::default() => self.add_linked_event(event, links),
                Some(_) | None => self.add_event(event),
            }
        }
    }

    fn copy_memory(&mut self, profile: &Profile, begin: Nanos, selection: &mut impl Selection) {
        let mut passthrough = profile.passthrough().walk(PassthroughKind::MemoryArguments);
        for (index, mut record) in profile.memory().iter().enumerate() {
            if !selection.keeps_memory(&record) {
                continue;
            }
            if let Some(text) = passthrough.at(index) {
                let place = self.memory.len();
                self.passthrough
                    .set(PassthroughKind::MemoryArguments, place, text);
            }
            record.time = record.time.saturating_sub(begin);
            self.add_memory(record);
        }
    }

    /// Drops threads without events or records. Forward operators on them ran elsewhere.
    fn drop_unused_threads(&mut self) {
        let mut is_used = vec![false; self.threads.len()];
        let events = self.events.events.iter().map(|event| event.thread);
        let memory = self.memory.distinct().map(|record| record.thread);
        let roles = self.roles.iter().map(|role| role.thread);
        let records = self
            .passthrough
            .unknown_events()
            .iter()
            .map(|record| record.thread);
        for thread in events.chain(memory).chain(roles).chain(records) {
            if let Some(is_used) = is_used.get_mut(thread.index()) {
                *is_used = true;
            }
        }
        if is_used.iter().all(|&is_used| is_used) {
            return;
        }
        let mut next = (0..).map(ThreadId::from_raw);
        let ids: Vec<Option<ThreadId>> = (is_used.iter())
            .map(|&is_used| is_used.then(|| next.next()).flatten())
            .collect();
        let moved = |thread: ThreadId| {
            let id = ids.get(thread.index()).copied().flatten();
            id.unwrap_or(thread)
        };
        self.events.map_threads(moved);
        self.memory.map_threads(moved);
        for role in &mut self.roles {
            role.thread = moved(role.thread);
        }
        for record in self.passthrough.unknown_events_mut() {
            record.thread = moved(record.thread);
        }
        let forward = |thread: ThreadId| match ids[thread.index()] {
            Some(id) => ForwardThread::At(id),
            None => ForwardThread::Elsewhere,
        };
        self.links.map_forward_threads(|raw| raw.map(forward));
        self.passthrough.retain_tracks(&ids);
        let mut used = is_used.into_iter();
        self.threads.retain(|_| used.next().unwrap_or(false));
    }
}
