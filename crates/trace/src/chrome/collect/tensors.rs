//! The storage addresses of tensor inputs, and the roles that a training program gave its tensors.

use mindprof_model::{Nanos, Part, RoleRecord, ThreadId};

use crate::chrome::category::role_of;
use crate::chrome::integer::integer_of;

/// The facts about tensors so far.
#[derive(Default)]
pub(super) struct Tensors {
    /// The events with storages, each with the index of its first address, in the order of the
    /// file.
    events: Vec<(u32, usize)>,
    addresses: Vec<u64>,
    /// Their times hold the bits of signed numbers, like those of events.
    pub(super) roles: Vec<RoleRecord>,
}

impl Tensors {
    /// Adds the list of storage addresses of an event. Returns whether it was valid.
    #[inline]
    pub(super) fn add_storages(&mut self, event: usize, raw: &[u8]) -> bool {
        let Some(list) = raw
            .strip_prefix(b"[")
            .and_then(|raw| raw.strip_suffix(b"]"))
        else {
            return false;
        };
        let begin = self.addresses.len();
        for item in list.split(|&byte| byte == b',') {
            let Some(address) = integer_of(item.trim_ascii()) else {
                self.addresses.truncate(begin);
                return false;
            };
            self.addresses.push(address);
        }
        self.events.push((event as u32, begin));
        true
    }

    /// Adds the roles that were set after `start` on a thread. Returns whether they were valid.
    #[inline]
    pub(super) fn add_roles(&mut self, thread: ThreadId, start: i64, raw: &[u8]) -> bool {
        if raw.is_empty() {
            return false;
        }
        let begin = self.roles.len();
        let said: Vec<(String, i64, u64, u64)> = serde_json::from_slice(raw).unwrap_or_default();
        for (role, after, address, bytes) in said {
            let Some(role) = role_of(&role) else {
                self.roles.truncate(begin);
                return false;
            };
            self.roles.push(RoleRecord {
                time: Nanos(start.saturating_add(after) as u64),
                address,
                bytes,
                thread,
                role,
            });
        }
        self.roles.len() > begin
    }

    /// Reorders the events: `order` gives, for each new index, the old one.
    pub(super) fn reorder(&mut self, order: &[u32]) {
        if self.events.is_empty() {
            return;
        }
        let mut places = vec![0; order.len()];
        for (place, &event) in (0..).zip(order) {
            places[event as usize] = place;
        }
        for (event, _) in &mut self.events {
            *event = places[*event as usize];
        }
    }

    /// Adds the facts to the part, once it has its events.
    pub(super) fn add_to(self, part: &mut Part) {
        let next_begins = self.events.iter().skip(1).map(|(_, begin)| *begin);
        let ends = next_begins.chain([self.addresses.len()]);
        for (&(event, begin), end) in self.events.iter().zip(ends) {
            part.set_storages(event as usize, &self.addresses[begin..end]);
        }
        for role in self.roles {
            part.add_role(role);
        }
    }
}
