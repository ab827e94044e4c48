//! The scopes that are open on one thread, so that a window that closes around them can still tell
//! of them.
//!
//! The owner opens and closes; any thread may take a snapshot. It is a stack as long as scopes
//! nest. One that closes below others leaves its slot behind, and a full stack uses such slots
//! again before it grows. Each slot is read under a sequence lock: `state` holds the depth and a
//! count of changes, and what was read counts only if the state was the same before and after.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64 as StdAtomicU64;

use crate::budget;
use crate::sync::{AtomicU64, Ordering, fence};

/// How many slots a thread has from the beginning. Each segment after them is as long as all
/// before it, charged to the budget.
#[cfg(not(loom))]
const FIRST: usize = 1024;
#[cfg(loom)]
const FIRST: usize = 2;

const SEGMENTS: usize = 20;

/// The name of a slot whose scope has closed, alone or with [`FREE`].
const CLOSED: u32 = 0;

/// Marks, with [`CLOSED`], a slot in the list of those to use again: its start is the next one.
const FREE: u64 = 1 << 32;

/// Ends that list.
const NO_SLOT: u64 = u64::MAX;

/// Where an open scope is announced: the thread and the slot in its open stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenSlot(u64);

impl OpenSlot {
    /// Stands for a scope that is not recorded.
    pub(crate) const NOWHERE: Self = Self(u64::MAX);

    /// The index of scopes that the budget has no slots for: they are recorded when they close, and
    /// counted as lost when they don't.
    const UNFOLLOWED: u32 = u32::MAX - 1;

    #[inline]
    pub(crate) const fn new(thread: u32, index: u32) -> Self {
        Self((thread as u64) << 32 | index as u64)
    }

    /// Returns the number of the thread.
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

/// A scope that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenEntry {
    pub(crate) start: u64,
    pub(crate) name: u32,
    /// As in a record.
    pub(crate) stack: u32,
    /// As in a record.
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

/// The open scopes of one moment in the order of their starts, and how many more there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenSnapshot {
    pub(crate) entries: Vec<OpenEntry>,
    pub(crate) deeper: u64,
}

#[derive(Debug)]
struct Slot {
    start: AtomicU64,
    /// Stored and read as the start is. No primitive of loom's: a model check of both takes eight
    /// times as long, and finds the same.
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
        // Release: a reader that sees this start must then also see the state of the pop or the
        // sweep before it, or it would mix two scopes; pairs with the acquire fence in `read`.
        self.start.store(entry.start, Ordering::Release);
        // Release: as of the start.
        (self.inputs).store(u64::from(entry.inputs), Ordering::Release);
        // Release: pairs with the acquire in `read`, which sees the start and the inputs then.
        self.what.store(entry.what(), Ordering::Release);
    }

    #[inline]
    fn is_closed(&self) -> bool {
        // Relaxed: a mark that another thread has just set may be missed here, and is found later.
        self.what.load(Ordering::Relaxed) as u32 == CLOSED
    }
}

/// The stack of open scopes of one thread.
#[derive(Debug)]
pub(crate) struct OpenStack {
    state: AtomicU64,
    first: [Slot; FIRST],
    further: [OnceLock<Box<[Slot]>>; SEGMENTS],
    /// The first slot to use again. The owner's alone.
    free: AtomicU64,
    /// How many open scopes have no slot.
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

    /// Opens a scope and returns the index of its slot, unless the first segment is full: then
    /// [`OpenStack::push`] does it. Called by the owner alone.
    #[inline]
    pub(crate) fn push_first(&self, entry: OpenEntry) -> Option<u32> {
        let (depth, changes) = self.own_state();
        self.first.get(depth as usize)?.set(entry);
        self.set_state(depth + 1, changes);
        Some(depth)
    }

    /// Closes the scope at `index`. Called by the owner alone, after the scope's record was
    /// published.
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

    /// Closes the scope at `index` though others are open above it, or on another thread than the
    /// owner.
    pub(crate) fn close_out_of_order(&self, index: u32) {
        if index == OpenSlot::UNFOLLOWED {
            // Relaxed: a plain count.
            self.unfollowed.fetch_sub(1, Ordering::Relaxed);
        } else if let Some(slot) = self.slot(index) {
            // Release: the scope's record was published before; pairs with the acquire in `read`.
            slot.what.store(u64::from(CLOSED), Ordering::Release);
        }
    }

    /// Forgets all scopes. Called by the owner alone, when a new recording begins.
    pub(crate) fn clear(&self) {
        let (_, changes) = self.own_state();
        self.set_state(0, changes);
        self.free.store(NO_SLOT, Ordering::Relaxed);
        self.unfollowed.store(0, Ordering::Relaxed);
        // What an earlier recording made is there for this one too.
        for segment in self.further.iter().filter_map(OnceLock::get) {
            budget::charge(size_of_val(&**segment), 1);
        }
    }

    /// Returns the scopes that are open now. One that closes meanwhile may be among them: its
    /// record is published then.
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

    /// Returns what the slot at `index` holds, or none if the stack is not as deep.
    fn read(&self, index: u32) -> Option<OpenEntry> {
        // A thread that opens and closes scopes all the time can disturb this, though not for long:
        // reading a slot takes less time than recording a scope.
        const MOST_ATTEMPTS: usize = if cfg!(loom) { 2 } else { 10_000 };
        for _ in 0..MOST_ATTEMPTS {
            // Acquire: pairs with the release in `set_state`, so that the slots below the depth are
            // seen.
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

    /// Opens a scope and returns the index of its slot. Called by the owner alone.
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

    /// Takes a slot of the list of those to use again. The list ends at a slot that the stack has
    /// come back to by itself since.
    fn take_free(&self, depth: u32) -> Option<u32> {
        // Relaxed here and below: the owner alone links slots.
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

    /// Finds a slot when all below `depth` have been used. Growing by as much as there is, unless a
    /// good part is closed, makes up for the sweep.
    fn make_room(&self, depth: u32) -> Option<u32> {
        let found = self.sweep(depth);
        if found < depth / 4 && self.grow(depth as usize) {
            return Some(depth);
        }
        self.take_free(depth)
    }

    /// Links the closed slots and returns their number.
    fn sweep(&self, depth: u32) -> u32 {
        let (_, changes) = self.own_state();
        // Whoever is reading a slot that is linked now has to read it again.
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

    /// Adds as many slots as there are, if the budget has room for them.
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
        // Relaxed: the owner alone writes the state.
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
