//! Storage addresses of tensor inputs, and tensor roles: arguments that only the memory timeline of
//! a file needs, and that other readers ignore.

use mindprof_model::{Category, EventId, Nanos, Profile, RoleRecord};

use super::Writer;
use crate::chrome::category::role_key;

impl Writer<'_> {
    /// Writes both for one event, each followed by a comma.
    pub(super) fn push_tensors(&mut self, id: EventId, start: Nanos) {
        let profile = self.profile;
        let addresses = profile.storages().of(id.index());
        if let Some((first, rest)) = addresses.split_first() {
            self.text.push("\"Input Storages\":[");
            self.text.push_number(*first);
            for address in rest {
                self.text.push(",");
                self.text.push_number(*address);
            }
            self.text.push("],");
        }
        let mut separator = "\"Tensor Roles\":[";
        while let Some(index) = self.roles.next_of(id) {
            self.text.push(separator);
            self.push_role(&profile.roles()[index], start);
            separator = ",";
        }
        if separator == "," {
            self.text.push("],");
        }
    }

    /// Writes the role of a tensor, the time after `start` at which it was seen, and the address
    /// and size of its storage.
    fn push_role(&mut self, record: &RoleRecord, start: Nanos) {
        self.text.push("[\"");
        self.text.push(role_key(record.role));
        self.text.push("\",");
        self.text
            .push_number(record.time.0.wrapping_sub(start.0) as i64);
        self.text.push(",");
        self.text.push_number(record.address);
        self.text.push(",");
        self.text.push_number(record.bytes);
        self.text.push("]");
    }
}

/// Assigns tensor roles to events, because a trace has no other place for them.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Pairs of an event and a role that it carries, in the order of both.
    pairs: Vec<(EventId, u32)>,
    next: usize,
}

impl Carried {
    /// Assigns each role to the last event that began before it on its thread, else to the thread's
    /// first event, and on a thread without events to the first of all.
    ///
    /// ```text
    /// event     |----| |------------|
    /// event                |--|
    /// role    a     b        c    d       a, b: first event; c, d: third
    /// ```
    pub(super) fn build(profile: &Profile, leave_out: &[Category]) -> Self {
        if profile.roles().is_empty() {
            return Self::default();
        }
        let mut events = (0..)
            .map(EventId::from_index)
            .zip(profile.events())
            .filter(|(_, event)| !leave_out.contains(&event.category))
            .peekable();
        let first_of_all = events.peek().map(|(id, _)| *id);
        let mut first = vec![None; profile.threads().len()];
        let mut last = first.clone();
        let (mut pairs, mut early) = (Vec::new(), Vec::new());
        for (index, role) in (0..).zip(profile.roles()) {
            while let Some((id, event)) = events.next_if(|(_, event)| event.start <= role.time) {
                first[event.thread.index()].get_or_insert(id);
                last[event.thread.index()] = Some(id);
            }
            match last[role.thread.index()] {
                Some(carrier) => pairs.push((carrier, index)),
                None => early.push((role.thread, index)),
            }
        }
        for (id, event) in events {
            first[event.thread.index()].get_or_insert(id);
        }
        for (thread, index) in early {
            let carrier = first[thread.index()].or(first_of_all);
            pairs.extend(carrier.map(|carrier| (carrier, index)));
        }
        pairs.sort_unstable();
        Self { pairs, next: 0 }
    }

    /// Returns to the first event.
    pub(super) const fn rewind(&mut self) {
        self.next = 0;
    }

    /// Returns the next role that the event carries. Events must be asked for in order.
    fn next_of(&mut self, event: EventId) -> Option<usize> {
        while self.pairs.get(self.next).is_some_and(|pair| pair.0 < event) {
            self.next += 1;
        }
        let &(carrier, role) = self.pairs.get(self.next)?;
        (carrier == event).then(|| {
            self.next += 1;
            role as usize
        })
    }
}
