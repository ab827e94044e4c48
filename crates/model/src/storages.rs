//! Which memory tensors lie in: of the inputs of events, and of what a training program says of its
//! tensors.
//!
//! A storage is known by where it lies. An address means one storage from its allocation to its
//! release; what lies there afterwards is another one, which `analyze` tells apart by the memory
//! records between them.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::{Nanos, ThreadId};

/// The addresses of the storages that each event's input tensors lie in, in the order in which the
/// event's inputs list them.
///
/// A training program gives its operators the same storages step after step, so each list is held
/// once.
#[derive(Clone, Debug, Default)]
pub struct StorageLists {
    /// The number of each event's list, zero for none; empty, or one entry for each event up to the
    /// last with a list.
    numbers: Vec<u32>,
    /// Where the list of each number ends among all addresses, and the next one begins.
    ends: Vec<usize>,
    addresses: Vec<u64>,
    /// The numbers of lists by what they hold; empty once all are settled.
    known: HashTable<u32>,
}

impl StorageLists {
    /// Returns the addresses of the event at `index`; none where they were not recorded.
    pub fn of(&self, index: usize) -> &[u64] {
        self.list(self.numbers.get(index).copied().unwrap_or(0))
    }

    fn list(&self, number: u32) -> &[u64] {
        match number.checked_sub(1) {
            None => &[],
            Some(0) => &self.addresses[..self.ends[0]],
            Some(before) => {
                &self.addresses[self.ends[before as usize - 1]..self.ends[before as usize]]
            }
        }
    }

    /// Returns whether no event has any.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Makes room for the lists of events up to number `events`.
    pub(crate) fn reserve(&mut self, events: usize) {
        let more = events.saturating_sub(self.numbers.len());
        self.numbers.reserve(more);
    }

    /// Sets the addresses of the event at `index`.
    pub(crate) fn set(&mut self, index: usize, addresses: &[u64]) {
        let number = self.number(addresses);
        if self.numbers.len() <= index {
            self.numbers.resize(index + 1, 0);
        }
        self.numbers[index] = number;
    }

    /// Returns the number of a list, adding it at first sight.
    fn number(&mut self, addresses: &[u64]) -> u32 {
        // Mostly the list is that of the event before.
        if let Some(&last) = self.numbers.last()
            && self.list(last) == addresses
        {
            return last;
        }
        if addresses.is_empty() {
            return 0;
        }
        let hash = |list: &[u64]| FxBuildHasher.hash_one(list);
        let is_it = |&number: &u32| self.list(number) == addresses;
        if let Some(&number) = self.known.find(hash(addresses), is_it) {
            return number;
        }
        self.addresses.extend_from_slice(addresses);
        self.ends.push(self.addresses.len());
        let number = u32::try_from(self.ends.len()).expect("fewer than 2^32 lists");
        let mut known = std::mem::take(&mut self.known);
        known.insert_unique(hash(addresses), number, |&number| hash(self.list(number)));
        self.known = known;
        number
    }

    /// Says that no list is set any more.
    pub(crate) fn settle(&mut self) {
        self.known = HashTable::new();
    }

    /// Puts the lists into another order of the events: `order` names, for each place, the one that
    /// comes there.
    pub(crate) fn reorder(&mut self, order: &[u32]) {
        if !self.numbers.is_empty() {
            let number = |&index: &u32| self.numbers.get(index as usize).copied();
            self.numbers = order.iter().map(|i| number(i).unwrap_or(0)).collect();
        }
    }
}

/// What a tensor is to the program that trains with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TensorRole {
    /// A parameter of a module or an optimizer.
    Parameter,
    /// The gradient of a parameter.
    Gradient,
    /// What an optimizer keeps from one step to the next.
    OptimizerState,
}

impl TensorRole {
    /// Every role, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Parameter, Self::Gradient, Self::OptimizerState];
}

/// One tensor that a module or an optimizer was seen to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleRecord {
    /// When it was seen, since the profile's reference time.
    pub time: Nanos,
    /// Where its storage lies.
    pub address: u64,
    /// How large the storage is.
    pub bytes: u64,
    /// The thread that saw it.
    pub thread: ThreadId,
    /// What it is.
    pub role: TensorRole,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_follow_their_events_into_another_order() {
        let mut lists = StorageLists::default();
        lists.set(0, &[1, 2]);
        lists.set(2, &[3]);
        lists.set(3, &[1, 2]);
        lists.reorder(&[2, 1, 0, 4, 3]);
        let found: Vec<_> = (0..6).map(|index| lists.of(index)).collect();
        assert_eq!(found, [&[3][..], &[], &[1, 2], &[], &[1, 2], &[]]);
        assert_eq!(lists.addresses, [1, 2, 3]);
    }
}
