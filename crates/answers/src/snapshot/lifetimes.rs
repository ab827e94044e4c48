//! From when to when each allocation existed, by the entries of a history and the blocks after it.
//!
//! ```text
//! entries    0 alloc a    1 free b    2 alloc c    3 free a       blocks at the end: c, d
//! a          |------------------------------------|
//! b     -----------------|                                       freed, but not allocated here
//! c                                   |---------------------
//! d     ----------------------------------------------------     neither: there all the time
//! ```

use mindprof_model::{AllocatorAction, AllocatorEntry, BlockState, SnapshotDevice, StackId};
use rustc_hash::{FxHashMap, FxHashSet};

/// An allocation. State `n` is that after the first `n` entries, so it exists in the states from
/// `begin` up to `end`, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifetime {
    /// The first state that it is in. Zero means that it is from before the history.
    pub(super) begin: u32,
    /// The first state that it is not in any more.
    pub(super) end: u32,
    pub(super) address: u64,
    /// The bytes that were asked for.
    pub(super) bytes: u64,
    pub(super) stack: StackId,
}

impl Lifetime {
    pub(super) const fn is_in(&self, state: u32) -> bool {
        self.begin <= state && state < self.end
    }
}

/// The allocations of a device that a snapshot knows of.
pub(super) struct Lifetimes {
    pub(super) all: Vec<Lifetime>,
    pub(super) contradictions: u64,
}

/// The state after which nothing is known: allocations that end there still exist.
const OPEN: u32 = u32::MAX;

impl Lifetimes {
    /// Pairs allocations with their releases.
    ///
    /// Memory that is returned may still be used by another stream, and is then not free: a
    /// lifetime ends when the release is complete.
    pub(super) fn build(device: &SnapshotDevice) -> Self {
        let ends = Ends::of(device);
        let mut pairing = Pairing::default();
        for (state, entry) in (1_u32..).zip(&device.entries) {
            if entry.action == AllocatorAction::Alloc {
                pairing.begin(Lifetime {
                    begin: state,
                    end: OPEN,
                    address: entry.address,
                    bytes: entry.bytes,
                    stack: entry.stack,
                });
            } else if ends.is_end(state, entry) {
                pairing.end(state, entry.address, entry.bytes);
            }
        }
        let last = device.entries.len() as u32;
        for block in device.segments.iter().flat_map(|segment| &segment.blocks) {
            if block.state != BlockState::Free {
                pairing.stays(
                    Lifetime {
                        begin: 0,
                        end: OPEN,
                        address: block.address,
                        bytes: block.requested,
                        stack: block.stack,
                    },
                    last,
                );
            }
        }
        // Allocated, not freed, and yet in no block.
        pairing.contradictions += pairing.open.len() as u64;
        Self {
            all: pairing.all,
            contradictions: pairing.contradictions,
        }
    }

    /// Returns the bytes of allocations from before the history.
    pub(super) fn before_bytes(&self) -> u64 {
        sum(self.all.iter().filter(|one| one.begin == 0))
    }

    /// Returns the part of them that has stacks.
    pub(super) fn overwritten_bytes(&self) -> u64 {
        let before = self.all.iter().filter(|one| one.begin == 0);
        sum(before.filter(|one| one.stack != StackId::NONE))
    }
}

/// Which entries end lifetimes.
///
/// A history without any complete release may have been recorded without them: a request is then
/// the last that is known of a block. The last request for a block that still awaits its release at
/// the end is not complete, and ends nothing.
struct Ends {
    has_completed: bool,
    /// The last request for each block that awaits its release, by address.
    awaiting: FxHashMap<u64, u32>,
}

impl Ends {
    fn of(device: &SnapshotDevice) -> Self {
        let mut entries = device.entries.iter();
        let has_completed = entries.any(|entry| entry.action == AllocatorAction::FreeCompleted);
        let mut awaiting = FxHashMap::default();
        if !has_completed {
            let blocks = device.segments.iter().flat_map(|segment| &segment.blocks);
            let blocks = blocks.filter(|block| block.state == BlockState::AwaitingFree);
            awaiting.extend(blocks.map(|block| (block.address, 0)));
            for (state, entry) in (1_u32..).zip(&device.entries) {
                if entry.action == AllocatorAction::FreeRequested
                    && let Some(last) = awaiting.get_mut(&entry.address)
                {
                    *last = state;
                }
            }
        }
        Self {
            has_completed,
            awaiting,
        }
    }

    fn is_end(&self, state: u32, entry: &AllocatorEntry) -> bool {
        if self.has_completed {
            return entry.action == AllocatorAction::FreeCompleted;
        }
        entry.action == AllocatorAction::FreeRequested
            && self.awaiting.get(&entry.address) != Some(&state)
    }
}

/// Returns the bytes of some allocations.
pub(super) fn sum<'a>(lifetimes: impl Iterator<Item = &'a Lifetime>) -> u64 {
    lifetimes.fold(0, |sum, one| sum.saturating_add(one.bytes))
}

/// The state of pairing: which addresses are allocated, and which ones any entry was about.
#[derive(Default)]
struct Pairing {
    all: Vec<Lifetime>,
    open: FxHashMap<u64, usize>,
    seen: FxHashSet<u64>,
    contradictions: u64,
}

impl Pairing {
    fn begin(&mut self, lifetime: Lifetime) {
        self.seen.insert(lifetime.address);
        let replaced = self.open.insert(lifetime.address, self.all.len());
        if let Some(replaced) = replaced {
            // Its release is missing. It cannot have lasted longer than this.
            self.all[replaced].end = lifetime.begin;
            self.contradictions += 1;
        }
        self.all.push(lifetime);
    }

    fn end(&mut self, state: u32, address: u64, bytes: u64) {
        if let Some(index) = self.open.remove(&address) {
            self.all[index].end = state;
        } else if self.seen.insert(address) {
            self.all.push(Lifetime {
                begin: 0,
                end: state,
                address,
                bytes,
                stack: StackId::NONE,
            });
        } else {
            self.contradictions += 1;
        }
    }

    /// Takes note of a block that is in use at the end.
    fn stays(&mut self, block: Lifetime, last: u32) {
        if let Some(index) = self.open.remove(&block.address) {
            let lifetime = &mut self.all[index];
            if lifetime.bytes != block.bytes {
                self.contradictions += 1;
            }
            if lifetime.stack == StackId::NONE {
                lifetime.stack = block.stack;
            }
        } else if self.seen.insert(block.address) {
            self.all.push(block);
        } else {
            // The address was freed before: this is a later allocation without an entry.
            self.contradictions += 1;
            self.all.push(Lifetime {
                begin: last,
                ..block
            });
        }
    }
}
