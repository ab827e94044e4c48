//! The open scopes of one thread, so that a window that closes around them can still report them.
//!
//! The owner opens and closes scopes; any thread may take a snapshot. As long as scopes nest, this
//! is a stack. A scope that closes below others leaves a free slot behind, and a full stack reuses
//! such slots before it grows. Slots are read under a sequence lock: `state` holds the depth and a
//! change counter, and a slot that was read counts only if the state was the same before and after.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64 as StdAtomicU64;

use crate::budget;
use crate::sync::{AtomicU64, Ordering, fence};

/// The number of slots that a thread starts with. Each further segment is as long as all before it,
/// and is charged to the budget.
#[cfg(not(loom))]
const FIRST: usize = 1024;
#[cfg(loom)]
const FIRST: usize = 2;

const SEGMENTS: usize = 20;

/// The name of a slot whose scope has closed, by itself or combined with [`FREE`].
const CLOSED: u32 = 0;

/// Marks, combined with [`CLOSED`], a slot in the free list; its start holds the index of the next
/// one.
const FREE: u64 = 1 << 32;

/// Ends the free list.
const NO_SLOT: u64 = u64::MAX;

/// The place of an open scope: its thread, and its slot in that thread's open stack. The scope
/// keeps it in order to close, possibly on another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenSlot(u64);

impl OpenSlot {
    /// Stands for a scope that is not recorded.
    pub(crate) const NOWHERE: Self = Self(u64::MAX);

    /// The index of scopes for which the budget has no slot. They are recorded if they close, and
    /// counted as lost if they do not.
    const UNFOLLOWED: u32 = u32::MAX - 1;

    #[inline]
    pub(crate) const fn new(thread: u32, index: u32) -> Self {
        Self((thread as u64) << 32 | index as u64)
    }

    /// Returns the key of the thread.
    #[inline]
    pub(crate) const fn thread(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the index in the thread's open stack.
    #[inline]
    pub(crate) const fn index(self) -> u32 {
        self.0 as u32
    }
}

/// A scope that has not ended; the fields are those of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenEntry {
    pub(crate) start: u64,
    pub(crate) name: u32,
    pub(crate) stack: u32,
    pub(crate) inputs: u32,
}

impl OpenEntry {
    const fn new(start: u64, inputs: u64, what: u64) -> Self {
        Self {
            start,
            name: what as u32,
            stack: (what >> 32) as u32,
            inputs: inputs as u32,
        }
    }

    const fn what(self) -> u64 {
        (self.stack as u64) << 32 | self.name as u64
    }
}

/// The open scopes at one moment in start order, and the number of those without a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenSnapshot {
    pub(crate) entries: Vec<OpenEntry>,
    pub(crate) deeper: u64,
}

#[derive(Debug)]
struct Slot {
    start: AtomicU64,
    /// Stored and read like the start. Not one of loom's atomics: a model check of both takes eight
    /// times as long and finds the same.
    inputs: StdAtomicU64,
    /// The name in the lower half and the stack in the upper, so that one store sets both.
    what: AtomicU64,
}

impl Slot {
    fn new() -> Self {
        Self {
            start: AtomicU64::new(0),
            inputs: StdAtomicU64::new(0),
            what: AtomicU64::new(u64::from(CLOSED)),
        }
    }

    #[inline]
    fn set(&self, entry: OpenEntry) {
        // Release: a reader that sees this start must also see the state of the pop or sweep before
        // it, or it would mix two scopes. Pairs with the acquire fence in `read`.
        self.start.store(entry.start, Ordering::Release);
        // Release: as for the start.
        (self.inputs).store(u64::from(entry.inputs), Ordering::Release);
        // Release: pairs with the acquire in `read`, which then sees the start and the inputs.
        self.what.store(entry.what(), Ordering::Release);
    }

    #[inline]
    fn is_closed(&self) -> bool {
        // Relaxed: a mark that another thread has just set may be missed here, and is found later.
        self.what.load(Ordering::Relaxed) as u32 == CLOSED
    }
}

/// The stack of open scopes of one thread. It exists so that scopes which are open when a window
/// closes appear in its profile as unfinished, although their records are only written when they
/// end.
#[derive(Debug)]
pub(crate) struct OpenStack {
    state: AtomicU64,
    first: [Slot; FIRST],
    further: [OnceLock<Box<[Slot]>>; SEGMENTS],
    /// The head of the free list, which only the owner uses.
    free: AtomicU64,
    /// The number of open scopes without a slot.
    unfollowed: AtomicU64,
}

impl OpenStack {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            first: std::array::from_fn(|_| Slot::new()),
            further: Default::default(),
            free: AtomicU64::new(NO_SLOT),
            unfollowed: AtomicU64::new(0),
        }
    }

    /// Opens a scope and returns the index of its slot. Returns `None` if the first segment is
    /// full; [`OpenStack::push`] handles that case. Only the owner calls this.
    #[inline]
    pub(crate) fn push_first(&self, entry: OpenEntry) -> Option<u32> {
        let (depth, changes) = self.own_state();
        self.first.get(depth as usize)?.set(entry);
        self.set_state(depth + 1, changes);
        Some(depth)
    }

    /// Closes the scope at `index`. Only the owner calls this, after it has published the scope's
    /// record.
    #[inline]
    pub(crate) fn pop(&self, index: u32) {
        let (depth, changes) = self.own_state();
        let below = self.first.get((index as usize).wrapping_sub(1));
        if index + 1 == depth && (index == 0 || below.is_some_and(|slot| !slot.is_closed())) {
            self.set_state(index, changes);
        } else {
            self.pop_slowly(index);
        }
    }

    #[cold]
    #[inline(never)]
    fn pop_slowly(&self, index: u32) {
        let (depth, changes) = self.own_state();
        if index + 1 == depth {
            self.set_state(self.below_closed(index), changes);
        } else {
            self.close_out_of_order(index);
        }
    }

    /// Closes the scope at `index` although others are open above it, or from a thread other than
    /// the owner.
    pub(crate) fn close_out_of_order(&self, index: u32) {
        if index == OpenSlot::UNFOLLOWED {
            // Relaxed: a plain counter.
            self.unfollowed.fetch_sub(1, Ordering::Relaxed);
        } else if let Some(slot) = self.slot(index) {
            // Release: the scope's record was published before. Pairs with the acquire in `read`.
            slot.what.store(u64::from(CLOSED), Ordering::Release);
        }
    }

    /// Forgets all scopes. Only the owner calls this, when a new recording begins.
    pub(crate) fn clear(&self) {
        let (_, changes) = self.own_state();
        self.set_state(0, changes);
        self.free.store(NO_SLOT, Ordering::Relaxed);
        self.unfollowed.store(0, Ordering::Relaxed);
        // Segments of earlier recordings are still there, and are charged to this one.
        for segment in self.further.iter().filter_map(OnceLock::get) {
            budget::charge(size_of_val(&**segment), 1);
        }
    }

    /// Returns the scopes that are open now. A scope that closes meanwhile may be included; its
    /// record is then already published.
    pub(crate) fn snapshot(&self) -> OpenSnapshot {
        let mut entries = Vec::new();
        let mut index = 0;
        while let Some(entry) = self.read(index) {
            entries.extend((entry.name != CLOSED).then_some(entry));
            index += 1;
        }
        entries.sort_by_key(|entry| entry.start);
        let deeper = self.unfollowed.load(Ordering::Relaxed);
        OpenSnapshot { entries, deeper }
    }

    /// Returns the contents of the slot at `index`, or `None` if the stack is not that deep.
    fn read(&self, index: u32) -> Option<OpenEntry> {
        // A busy owner can force retries, but not for long: reading a slot takes less time than
        // recording a scope.
        const MOST_ATTEMPTS: usize = if cfg!(loom) { 2 } else { 10_000 };
        for _ in 0..MOST_ATTEMPTS {
            // Acquire: pairs with the release in `set_state`, which makes the slots below the depth
            // visible.
            let before = self.state.load(Ordering::Acquire);
            if index >= before as u32 {
                return None;
            }
            let slot = self.slot(index)?;
            // Acquire: pairs with the release in `Slot::set`.
            let what = slot.what.load(Ordering::Acquire);
            let start = slot.start.load(Ordering::Relaxed);
            let inputs = slot.inputs.load(Ordering::Relaxed);
            // Acquire: pairs with the release stores of starts and inputs.
            fence(Ordering::Acquire);
            if self.state.load(Ordering::Relaxed) == before {
                return Some(OpenEntry::new(start, inputs, what));
            }
        }
        None
    }

    /// Opens a scope and returns the index of its slot. Only the owner calls this.
    #[cold]
    pub(crate) fn push(&self, entry: OpenEntry) -> u32 {
        let (depth, _) = self.own_state();
        let mut index = depth;
        if self.slot(depth).is_none() {
            let reused = self.take_free(depth).or_else(|| self.make_room(depth));
            let Some(found) = reused else {
                self.unfollowed.fetch_add(1, Ordering::Relaxed);
                return OpenSlot::UNFOLLOWED;
            };
            index = found;
        }
        if let Some(slot) = self.slot(index) {
            slot.set(entry);
        }
        let (_, changes) = self.own_state();
        self.set_state(depth.max(index + 1), changes);
        index
    }

    /// Takes a slot from the free list. The list ends early at a slot that the stack has reused by
    /// itself since.
    fn take_free(&self, depth: u32) -> Option<u32> {
        // Relaxed here and below: only the owner links slots.
        let index = self.free.load(Ordering::Relaxed);
        let is_below = index < u64::from(depth);
        let slot = is_below.then(|| self.slot(index as u32)).flatten()?;
        if slot.what.load(Ordering::Relaxed) != FREE {
            return None;
        }
        let next = slot.start.load(Ordering::Relaxed);
        self.free.store(next, Ordering::Relaxed);
        Some(index as u32)
    }

    /// Finds a slot after all below `depth` have been used. It doubles the stack unless at least a
    /// quarter of the slots is free, so that the cost of the sweeps is amortised.
    fn make_room(&self, depth: u32) -> Option<u32> {
        let found = self.sweep(depth);
        if found < depth / 4 && self.grow(depth as usize) {
            return Some(depth);
        }
        self.take_free(depth)
    }

    /// Links the closed slots into the free list and returns their number.
    fn sweep(&self, depth: u32) -> u32 {
        let (_, changes) = self.own_state();
        // A reader of a slot that is about to be linked has to retry.
        self.set_state(depth, changes);
        let (mut next, mut found) = (NO_SLOT, 0);
        for index in (0..depth).rev() {
            let Some(slot) = self.slot(index).filter(|slot| slot.is_closed()) else {
                continue;
            };
            // Release: as in `Slot::set`.
            slot.start.store(next, Ordering::Release);
            slot.what.store(FREE, Ordering::Relaxed);
            next = u64::from(index);
            found += 1;
        }
        self.free.store(next, Ordering::Relaxed);
        found
    }

    /// Doubles the number of slots. Returns false if the budget has no room for them.
    fn grow(&self, capacity: usize) -> bool {
        let bytes = capacity * size_of::<Slot>();
        let segment = (capacity / FIRST).ilog2() as usize;
        let Some(segment) = self.further.get(segment) else {
            return false;
        };
        if budget::charge(bytes, bytes) == 0 {
            return false;
        }
        let slots = (0..capacity).map(|_| Slot::new()).collect();
        segment.set(slots).is_ok()
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        match self.first.get(index as usize) {
            Some(slot) => Some(slot),
            None => self.further_slot(index as usize),
        }
    }

    fn further_slot(&self, index: usize) -> Option<&Slot> {
        let segment = (index / FIRST).ilog2() as usize;
        let slots = self.further.get(segment)?.get()?;
        slots.get(index - (FIRST << segment))
    }

    fn below_closed(&self, mut depth: u32) -> u32 {
        while depth > 0 && self.slot(depth - 1).is_some_and(Slot::is_closed) {
            depth -= 1;
        }
        depth
    }

    #[inline]
    fn own_state(&self) -> (u32, u32) {
        // Relaxed: only the owner writes the state.
        let state = self.state.load(Ordering::Relaxed);
        (state as u32, (state >> 32) as u32)
    }

    #[inline]
    fn set_state(&self, depth: u32, changes: u32) {
        let state = u64::from(changes.wrapping_add(1)) << 32 | u64::from(depth);
        // Release: pairs with the acquire in `read`.
        self.state.store(state, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
