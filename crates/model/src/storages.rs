//! The storages of tensors: addresses of events' inputs, and the roles of tensors in training.
//!
//! A storage is identified by its address, from its allocation to its release. Afterwards the same
//! address is another storage, which `analyze` distinguishes by the memory records in between.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::{Nanos, ThreadId};

/// Ends the storage addresses of a list; the tensors' identities follow. No storage lies here.
pub(crate) const IDENTITIES: u64 = u64::MAX;

/// Identifies one tensor object among those that an event was given, in one word: the address of
/// torch's `TensorImpl`, the kind of device and the layout. The observer of `PyTorch` records it
/// beside the storage, because a tensor may change its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorIdentity(u64);

impl TensorIdentity {
    const ADDRESS_BITS: u32 = 48;

    /// Packs an address of at most 48 bits, and torch's numbers for the device and the layout.
    pub const fn new(address: u64, device: u8, layout: u8) -> Self {
        let address = address & ((1 << Self::ADDRESS_BITS) - 1);
        Self(address | (device as u64) << Self::ADDRESS_BITS | (layout as u64) << 56)
    }

    /// Returns the word that an encoded list holds.
    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// Returns the identity for a word from [`Self::to_word`].
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// Returns the address of the `TensorImpl`.
    pub const fn address(self) -> u64 {
        self.0 & ((1 << Self::ADDRESS_BITS) - 1)
    }

    /// Returns torch's number for the kind of device.
    pub const fn device(self) -> u8 {
        (self.0 >> Self::ADDRESS_BITS) as u8
    }

    /// Returns the number of the layout in torch's C interface.
    pub const fn layout(self) -> u8 {
        (self.0 >> 56) as u8
    }
}

/// The storage addresses of each event's input tensors, in the order of the inputs. `analyze` uses
/// them to find out what memory is used for.
///
/// The identities of the tensors may follow, after a marker; they are kept as they are and
/// only serve [`StorageLists::identities`].
///
/// A training program passes the same storages to its operators step after step, so each distinct
/// list is held once.
#[derive(Clone, Debug, Default)]
pub struct StorageLists {
    /// The number of each event's list, zero for none. It ends after the last event with a list.
    numbers: Vec<u32>,
    /// The end of each list among all addresses, which is the start of the next.
    ends: Vec<usize>,
    addresses: Vec<u64>,
    /// Finds the number of a list; empty once all are settled.
    known: HashTable<u32>,
}

impl StorageLists {
    /// Returns the addresses of the event at `index`; empty if they were not recorded.
    pub fn of(&self, index: usize) -> &[u64] {
        let words = self.words(index);
        let end = words.iter().position(|&word| word == IDENTITIES);
        &words[..end.unwrap_or(words.len())]
    }

    /// Iterates over the identities of the same tensors; empty if they were not recorded.
    pub fn identities(&self, index: usize) -> impl Iterator<Item = TensorIdentity> {
        let words = self.words(index);
        let begin = words.iter().position(|&word| word == IDENTITIES);
        let words = begin.map_or(&[][..], |begin| &words[begin + 1..]);
        words.iter().map(|&word| TensorIdentity::from_word(word))
    }

    /// Returns the whole list of the event at `index`: the addresses and what follows them.
    pub(crate) fn words(&self, index: usize) -> &[u64] {
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

    /// Returns whether no event has addresses.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Reserves room for the first `events` events.
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

    /// Returns the number of a list, adding it if it is new.
    fn number(&mut self, addresses: &[u64]) -> u32 {
        // Mostly, the list is that of the previous event.
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

    /// Frees the index, after the last list was set.
    pub(crate) fn settle(&mut self) {
        self.known = HashTable::new();
    }

    /// Follows a reordering of the events: `order` holds, for each place, the index of the event
    /// that moves there.
    pub(crate) fn reorder(&mut self, order: &[u32]) {
        if !self.numbers.is_empty() {
            let number = |&index: &u32| self.numbers.get(index as usize).copied();
            self.numbers = order.iter().map(|i| number(i).unwrap_or(0)).collect();
        }
    }
}

/// The role of a tensor in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TensorRole {
    /// A parameter of a module or an optimizer.
    Parameter,
    /// The gradient of a parameter.
    Gradient,
    /// State that an optimizer keeps between steps.
    OptimizerState,
}

impl TensorRole {
    /// Every role, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Parameter, Self::Gradient, Self::OptimizerState];
}

/// A tensor that a module or an optimizer was seen to hold. The memory timeline uses these records
/// to classify the blocks that the tensors lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleRecord {
    /// The time at which it was seen, since the profile's reference time.
    pub time: Nanos,
    /// The address of its storage.
    pub address: u64,
    /// The size of its storage.
    pub bytes: u64,
    /// The thread that saw it.
    pub thread: ThreadId,
    /// Its role.
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

    #[test]
    fn identities_are_no_addresses() {
        let first = TensorIdentity::new(0x7f00_0000_1230, 2, 1);
        let second = TensorIdentity::new(0x7f00_0000_4560, 0, 0);
        let mut lists = StorageLists::default();
        lists.set(0, &[7, 8, IDENTITIES, first.to_word(), second.to_word()]);
        lists.set(1, &[9]);
        assert_eq!((lists.of(0), lists.of(1)), (&[7, 8][..], &[9][..]));
        assert_eq!(lists.identities(0).collect::<Vec<_>>(), [first, second]);
        assert_eq!(lists.identities(1).count(), 0);
        let parts = (first.address(), first.device(), first.layout());
        assert_eq!(parts, (0x7f00_0000_1230, 2, 1));
    }
}
