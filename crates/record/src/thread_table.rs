//! A table from a framework's thread numbers to the recorder's keys.
//!
//! Frameworks number their threads themselves and name the forward thread of a backward node by
//! such a number. A thread enters the table with its first scope and leaves it when it exits; its
//! key stays findable until another thread needs the slot. There is no lock, so a fork cannot find
//! one held.

use crate::sync::{AtomicU64, Ordering};
use crate::thread_key::ThreadKey;

/// The number of neighbouring slots in which a number may be.
const PLACES: usize = 8;

/// Marks the entry of a thread that has exited.
const EXITED: u64 = 1 << 32;

/// The keys of threads by number, in a fixed number of slots.
///
/// Numbers are given out in order, so thread `n` meets thread `n - SLOTS` in its slot. It replaces
/// it only if that thread has exited, and otherwise takes one of the slots behind it: a living
/// thread is found however many threads came after it. A number is compared before its key is
/// returned, so a replaced thread is unknown and never mistaken for another.
///
/// ```text
/// entry     number (31 bits)   exited (1 bit)   key (32 bits)
/// ```
#[derive(Debug)]
pub struct ThreadTable<const SLOTS: usize> {
    // Relaxed everywhere: an entry is one word, which publishes nothing else.
    slots: [AtomicU64; SLOTS],
}

impl<const SLOTS: usize> ThreadTable<SLOTS> {
    /// Makes an empty table. A static one takes no memory for slots that were never used.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            slots: [const { AtomicU64::new(0) }; SLOTS],
        }
    }

    #[cfg(loom)]
    fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Enters a thread. Returns false if the slots for its number are all taken by living threads;
    /// the thread then stays unknown.
    pub fn enter(&self, number: u64, key: ThreadKey) -> bool {
        let entry = head(number) | u64::from(key.to_raw());
        self.places(number).any(|slot| {
            let found = slot.load(Ordering::Relaxed);
            let is_free = found == 0 || found & EXITED != 0;
            let take = || {
                slot.compare_exchange(found, entry, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            };
            is_free && take()
        })
    }

    /// Notes that a thread exits, so that its slot may be used for another one.
    pub fn leave(&self, number: u64) {
        if let Some(slot) = self.find(number) {
            // Nobody replaces the entry before this: the thread has not left yet.
            slot.fetch_or(EXITED, Ordering::Relaxed);
        }
    }

    /// Returns the key of a thread, or [`ThreadKey::NONE`] if it never entered the table or was
    /// replaced after it had exited.
    pub fn key_of(&self, number: u64) -> ThreadKey {
        let entries = self.places(number).map(|slot| slot.load(Ordering::Relaxed));
        let mut own = entries.filter(|&entry| is_of(entry, number));
        let key = |entry: u64| ThreadKey::from_raw(entry as u32);
        own.next().map_or(ThreadKey::NONE, key)
    }

    fn find(&self, number: u64) -> Option<&AtomicU64> {
        let mut places = self.places(number);
        places.find(|slot| is_of(slot.load(Ordering::Relaxed), number))
    }

    fn places(&self, number: u64) -> impl Iterator<Item = &AtomicU64> {
        let first = number as usize % SLOTS;
        let most = PLACES.min(SLOTS);
        (first..first + most).map(|place| &self.slots[place % SLOTS])
    }
}

#[cfg(not(loom))]
impl<const SLOTS: usize> Default for ThreadTable<SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

const fn head(number: u64) -> u64 {
    number << 33
}

const fn is_of(entry: u64, number: u64) -> bool {
    entry != 0 && entry >> 33 == head(number) >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> ThreadKey {
        ThreadKey::from_raw(number as u32 + 100)
    }

    #[cfg(not(loom))]
    #[test]
    fn a_living_thread_is_found_however_many_come_after_it() {
        let table = ThreadTable::<16>::new();
        assert!(table.enter(1, key(1)));
        for number in 2..10_000 {
            assert!(table.enter(number, key(number)));
            assert_eq!(table.key_of(number), key(number));
            table.leave(number);
            assert_eq!(
                table.key_of(number),
                key(number),
                "its graph may outlive it"
            );
            assert_eq!(table.key_of(1), key(1));
        }
        assert_eq!(table.key_of(2), ThreadKey::NONE, "it was replaced");
        assert_eq!(table.key_of(20_000), ThreadKey::NONE);
    }

    #[cfg(not(loom))]
    #[test]
    fn a_table_of_living_threads_refuses_more() {
        let table = ThreadTable::<4>::new();
        for number in 1..=4 {
            assert!(table.enter(number, key(number)));
        }
        assert!(!table.enter(5, key(5)));
        assert_eq!(table.key_of(5), ThreadKey::NONE);
        table.leave(3);
        assert!(table.enter(5, key(5)));
        assert_eq!(table.key_of(5), key(5));
        assert_eq!(table.key_of(1), key(1));
    }

    #[cfg(loom)]
    #[test]
    fn threads_that_want_the_same_slot_all_find_themselves() {
        loom::model(|| {
            let table = loom::sync::Arc::new(ThreadTable::<2>::new());
            assert!(table.enter(2, key(2)));
            table.leave(2);
            let others = [4, 6].map(|number| {
                let table = table.clone();
                loom::thread::spawn(move || {
                    assert!(table.enter(number, key(number)));
                    assert_eq!(table.key_of(number), key(number));
                })
            });
            let found = table.key_of(2);
            assert!(found == key(2) || found == ThreadKey::NONE);
            for other in others {
                other.join().unwrap();
            }
            assert_eq!((table.key_of(4), table.key_of(6)), (key(4), key(6)));
        });
    }
}
