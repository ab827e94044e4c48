//! The scopes that are open on one thread, so that a window that closes around them can still tell
//! of them.
//!
//! The owner pushes and pops; any thread may take a snapshot. It is a sequence lock: `state` holds
//! the depth and a count of changes, entries are written before the state that covers them, and a
//! snapshot counts only if the state was the same before and after.

use crate::sync::{AtomicU64, Ordering, fence};

/// How deep open scopes are followed, calls of Python included. Deeper ones are recorded when they
/// close, and counted as lost when they don't.
#[cfg(not(loom))]
pub(crate) const DEPTH: usize = 1024;
#[cfg(loom)]
pub(crate) const DEPTH: usize = 2;

/// The name of an entry whose scope was closed by another thread or out of order.
const CLOSED: u32 = 0;

/// Where an open scope is announced: the thread and the index in its open stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenSlot(u64);

impl OpenSlot {
    /// Stands for a scope that is not recorded.
    pub(crate) const NOWHERE: Self = Self(u64::MAX);

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
}

impl OpenEntry {
    const fn new(start: u64, what: u64) -> Self {
        Self {
            start,
            name: what as u32,
            stack: (what >> 32) as u32,
        }
    }

    const fn what(self) -> u64 {
        (self.stack as u64) << 32 | self.name as u64
    }
}

/// The open scopes of one moment, outermost first, and how many more there were below them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenSnapshot {
    pub(crate) entries: Vec<OpenEntry>,
    pub(crate) deeper: u64,
}

#[derive(Debug)]
struct Slot {
    start: AtomicU64,
    /// The name in the lower half and the stack in the upper, so that one store sets both.
    what: AtomicU64,
}

/// The stack of open scopes of one thread.
#[derive(Debug)]
pub(crate) struct OpenStack {
    state: AtomicU64,
    slots: [Slot; DEPTH],
}

impl OpenStack {
    pub(crate) fn new() -> Self {
        let slot = || Slot {
            start: AtomicU64::new(0),
            what: AtomicU64::new(u64::from(CLOSED)),
        };
        Self {
            state: AtomicU64::new(0),
            slots: std::array::from_fn(|_| slot()),
        }
    }

    /// Pushes a scope and returns its index. Called by the owner alone.
    #[inline]
    pub(crate) fn push(&self, entry: OpenEntry) -> u32 {
        let (depth, changes) = self.own_state();
        if let Some(slot) = self.slots.get(depth as usize) {
            // Release: a snapshot that reads this value must then also see the state of the pop
            // before it, or it would mix two scopes; pairs with the acquire fence in
            // `snapshot`.
            slot.start.store(entry.start, Ordering::Release);
            slot.what.store(entry.what(), Ordering::Release);
        }
        self.set_state(depth + 1, changes);
        depth
    }

    /// Pops the scope at `index`. Called by the owner alone, after the scope's record was
    /// published.
    #[inline]
    pub(crate) fn pop(&self, index: u32) {
        let (depth, changes) = self.own_state();
        if index + 1 == depth {
            self.set_state(self.below_closed(index), changes);
        } else {
            self.close_out_of_order(index);
        }
    }

    /// Marks the scope at `index` as closed though others are open above it, or by another thread
    /// than the owner.
    #[cold]
    pub(crate) fn close_out_of_order(&self, index: u32) {
        if let Some(slot) = self.slots.get(index as usize) {
            // Release: the scope's record was published before; pairs with the acquire fence in
            // `snapshot`.
            slot.what.store(u64::from(CLOSED), Ordering::Release);
        }
    }

    /// Forgets all scopes. Called by the owner alone, when a new recording begins.
    pub(crate) fn clear(&self) {
        let (_, changes) = self.own_state();
        self.set_state(0, changes);
    }

    /// Returns the scopes that are open now.
    pub(crate) fn snapshot(&self) -> OpenSnapshot {
        // A thread that opens and closes scopes all the time can disturb a snapshot, though not for
        // long: reading the few open scopes takes less time than recording one.
        const MOST_ATTEMPTS: usize = if cfg!(loom) { 2 } else { 10_000 };
        for _ in 0..MOST_ATTEMPTS {
            if let Some(snapshot) = self.try_snapshot() {
                return snapshot;
            }
        }
        OpenSnapshot::default()
    }

    fn try_snapshot(&self) -> Option<OpenSnapshot> {
        // Acquire: pairs with the release in `set_state`, so that the entries below the depth are
        // seen.
        let before = self.state.load(Ordering::Acquire);
        let depth = before as u32 as usize;
        let entries = self.slots.iter().take(depth).map(|slot| {
            let start = slot.start.load(Ordering::Relaxed);
            OpenEntry::new(start, slot.what.load(Ordering::Relaxed))
        });
        let entries = entries.filter(|entry| entry.name != CLOSED).collect();
        // Acquire: pairs with the release stores in `push`; see there.
        fence(Ordering::Acquire);
        let after = self.state.load(Ordering::Relaxed);
        let deeper = depth.saturating_sub(DEPTH) as u64;
        (before == after).then_some(OpenSnapshot { entries, deeper })
    }

    fn below_closed(&self, mut depth: u32) -> u32 {
        while depth > 0 && (depth as usize) <= DEPTH {
            // Relaxed: a mark that another thread has just set may be missed here and is found at
            // the next pop.
            if self.slots[depth as usize - 1].what.load(Ordering::Relaxed) as u32 != CLOSED {
                break;
            }
            depth -= 1;
        }
        depth
    }

    fn own_state(&self) -> (u32, u32) {
        // Relaxed: the owner alone writes the state.
        let state = self.state.load(Ordering::Relaxed);
        (state as u32, (state >> 32) as u32)
    }

    fn set_state(&self, depth: u32, changes: u32) {
        let state = u64::from(changes.wrapping_add(1)) << 32 | u64::from(depth);
        // Release: pairs with the acquire in `try_snapshot`.
        self.state.store(state, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: u64) -> OpenEntry {
        OpenEntry {
            start,
            name: start as u32,
            stack: start as u32,
        }
    }

    #[cfg(not(loom))]
    mod plain {
        use super::*;

        fn starts(stack: &OpenStack) -> Vec<u64> {
            stack
                .snapshot()
                .entries
                .iter()
                .map(|entry| entry.start)
                .collect()
        }

        #[test]
        fn a_snapshot_holds_what_is_open_outermost_first() {
            let stack = OpenStack::new();
            let indices: Vec<u32> = (1..=3).map(|start| stack.push(entry(start))).collect();
            stack.pop(indices[2]);
            assert_eq!(starts(&stack), [1, 2]);
        }

        #[test]
        fn closing_out_of_order_leaves_the_others_open() {
            let stack = OpenStack::new();
            let indices: Vec<u32> = (1..=3).map(|start| stack.push(entry(start))).collect();
            stack.pop(indices[1]);
            assert_eq!(starts(&stack), [1, 3]);
            stack.pop(indices[2]);
            assert_eq!(starts(&stack), [1]);
            assert_eq!(
                stack.push(entry(9)),
                1,
                "the slot of the closed one is free again"
            );
        }

        #[test]
        fn deeper_scopes_are_counted() {
            let stack = OpenStack::new();
            let indices: Vec<u32> = (1..=DEPTH as u64 + 3)
                .map(|n| stack.push(entry(n)))
                .collect();
            assert_eq!(
                (stack.snapshot().entries.len(), stack.snapshot().deeper),
                (DEPTH, 3)
            );
            indices.into_iter().rev().for_each(|index| stack.pop(index));
            assert_eq!(stack.snapshot(), OpenSnapshot::default());
        }
    }

    #[cfg(loom)]
    #[test]
    fn a_snapshot_never_mixes_two_scopes() {
        loom::model(|| {
            let stack = loom::sync::Arc::new(OpenStack::new());
            let reader = {
                let stack = stack.clone();
                loom::thread::spawn(move || {
                    for entry in stack.snapshot().entries {
                        assert_eq!(entry.start, u64::from(entry.name));
                        assert_eq!(entry.name, entry.stack);
                    }
                })
            };
            for start in 1..3 {
                let index = stack.push(entry(start));
                stack.pop(index);
            }
            reader.join().unwrap();
        });
    }
}
