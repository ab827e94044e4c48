//! Chunks: fixed runs of records, written by one thread and read by any.
//!
//! The owner writes record `n` and then publishes length `n + 1`; a reader loads the length first
//! and reads only records below it, which are never written again. Memory is mapped with its pages
//! present, and some runs are kept for the next recording, because a page fault costs as much as
//! half a scope.

#![expect(
    unsafe_code,
    reason = "a reader and the owner share one run of memory, split at the published length"
)]

use crate::budget;
use crate::raw::Record;
use crate::sync::{AtomicUsize, Ordering};

/// The capacity of a thread's first chunk, 16 KiB: most threads record little.
pub(crate) const FIRST: usize = 512;

/// The factor by which each further chunk is larger, up to the full size.
pub(crate) const GROWTH: usize = 16;

/// The capacity of a full-size chunk: one huge page of 2 MiB, which is populated in a fraction of
/// the time that its 512 small pages would take.
pub(crate) const FULL: usize = 65_536;

/// A fixed run of records and the length published so far. One thread appends without a lock while
/// any thread reads below the published length, so that closing a window never stops the program.
#[derive(Debug)]
pub(crate) struct Chunk {
    len: AtomicUsize,
    slots: Slots,
}

impl Chunk {
    /// Allocates an empty chunk for `capacity` records. Returns `None` if the system has no memory.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        Some(Self {
            len: AtomicUsize::new(0),
            slots: Slots::new(capacity)?,
        })
    }

    /// Allocates an empty chunk for `wanted` records, or for as many as the budget has room for.
    /// Returns `None` if the budget or the system has no room at all.
    pub(crate) fn within_budget(wanted: usize) -> Option<Self> {
        let unit = size_of::<Record>();
        let capacity = budget::charge_records(wanted * unit, unit) / unit;
        (capacity > 0).then(|| Self::new(capacity)).flatten()
    }

    /// Appends a record, or returns false if the chunk is full.
    ///
    /// # Safety
    /// Only one thread at a time may call this: the owner of the buffer that holds the chunk or,
    /// for the chunk of scopes that end on other threads, the thread that holds the buffer's lock.
    #[inline]
    pub(crate) unsafe fn push(&self, record: Record) -> bool {
        // Relaxed: the caller alone writes the length, so it reads its own value.
        let len = self.len.load(Ordering::Relaxed);
        if len == self.slots.capacity() {
            return false;
        }
        // SAFETY: `len` is below the capacity, readers only touch slots below the published length,
        // and the caller guarantees that no other thread pushes.
        unsafe { self.slots.write(len, record) };
        // Release: pairs with the acquire in `len`, so that a reader of this length sees the
        // record.
        self.len.store(len + 1, Ordering::Release);
        true
    }

    /// Returns the capacity in records.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Returns the bytes that the budget was charged for the records.
    pub(crate) fn bytes(&self) -> usize {
        self.capacity() * size_of::<Record>()
    }

    /// Returns the number of published records.
    pub(crate) fn len(&self) -> usize {
        // Acquire: pairs with the release in `push`.
        self.len.load(Ordering::Acquire)
    }

    /// Iterates over the first `len` records, or over all published ones if those are fewer.
    pub(crate) fn records(&self, len: usize) -> impl Iterator<Item = &Record> {
        (0..len.min(self.len())).map(|index| {
            // SAFETY: the slot is below the published length, so `push` has written it and never
            // writes it again.
            unsafe { self.slots.get(index) }
        })
    }

    /// Returns the record at `index`.
    ///
    /// # Panics
    /// Panics if the record is not published.
    #[inline]
    pub(crate) fn record(&self, index: usize) -> &Record {
        assert!(index < self.len(), "record {index} is not published");
        // SAFETY: the assertion holds the index below the published length, as in `records`.
        unsafe { self.slots.get(index) }
    }
}

#[cfg(not(loom))]
use self::mapped::Slots;
#[cfg(not(loom))]
pub(crate) use self::mapped::{SpareGuard, spare_guard};

#[cfg(not(loom))]
mod mapped {
    use std::fmt;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    #[cfg(all(target_os = "linux", not(miri)))]
    use memmap2::Advice;
    use memmap2::{MmapMut, MmapOptions};

    use super::{FIRST, FULL, GROWTH, Record};

    /// Runs kept for reuse, at most 7 MiB, which is what one cycle of a schedule usually takes. A
    /// fresh run costs little more if it is filled, and memory kept here is missing elsewhere in
    /// the process.
    static SPARE: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

    /// The sizes that are kept and how many of each: those that a thread allocates one after
    /// another.
    const MOST_SPARE: [(usize, usize); 3] = [(FIRST, 16), (FIRST * GROWTH, 3), (FULL, 3)];

    /// A run kept for reuse, and its capacity.
    pub(crate) struct Spare {
        capacity: usize,
        map: MmapMut,
    }

    /// The size and alignment of a huge page; a full chunk is as large.
    const HUGE_PAGE: usize = 2 << 20;
    const _: () = assert!(FULL * size_of::<Record>() == HUGE_PAGE);

    /// How many records ahead to prefetch: two cache lines.
    const AHEAD: usize = 4;

    /// The locked list of spare runs. A fork holds it, so that the child never finds it locked.
    pub(crate) type SpareGuard = MutexGuard<'static, Vec<Spare>>;

    /// Locks the spare runs.
    pub(crate) fn spare_guard() -> SpareGuard {
        SPARE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for a run of records, with its pages present.
    pub(super) struct Slots {
        map: Option<MmapMut>,
        first: *mut Record,
        capacity: usize,
    }

    // SAFETY: `Slots` owns the mapping behind its pointer, and the callers of `write` and `get`
    // guarantee that no slot is written while another thread touches it.
    unsafe impl Send for Slots {}
    // SAFETY: as for `Send`.
    unsafe impl Sync for Slots {}

    impl Slots {
        pub(super) fn new(capacity: usize) -> Option<Self> {
            let bytes = capacity.checked_mul(size_of::<Record>())?;
            let mut map = match spare(capacity) {
                Some(map) => map,
                None if capacity == FULL => map_huge(bytes)?,
                None => map_present(bytes)?,
            };
            let offset = if capacity == FULL {
                to_huge_page(&map)
            } else {
                0
            };
            #[expect(clippy::cast_ptr_alignment, reason = "a map begins at a page")]
            let first = map[offset..].as_mut_ptr().cast::<Record>();
            Some(Self {
                map: Some(map),
                first,
                capacity,
            })
        }

        #[inline]
        pub(super) const fn capacity(&self) -> usize {
            self.capacity
        }

        /// # Safety
        /// `index` must be below the capacity, and no other thread may touch the slot during the
        /// call.
        #[inline]
        pub(super) unsafe fn write(&self, index: usize, record: Record) {
            // Field by field: written as one value, the record is first assembled in memory piece
            // by piece, and loading it from there as a whole stalls for a tenth of a scope.
            // SAFETY: the mapping is page-aligned and holds `capacity` records, and the caller
            // guarantees that `index` is below the capacity and that no other thread touches the
            // slot.
            unsafe {
                let slot = self.first.add(index);
                (&raw mut (*slot).start).write(record.start);
                (&raw mut (*slot).end).write(record.end);
                (&raw mut (*slot).name).write(record.name);
                (&raw mut (*slot).inputs).write(record.inputs);
                (&raw mut (*slot).stack).write(record.stack);
                (&raw mut (*slot).sequence).write(record.sequence);
                prefetch(slot.wrapping_add(AHEAD));
            }
        }

        /// # Safety
        /// The slot must have been written, and nobody may write it while the reference lives.
        #[inline]
        pub(super) unsafe fn get(&self, index: usize) -> &Record {
            // SAFETY: the caller guarantees a written slot, which lies in the mapping as in
            // `write`; the mapping lives as long as `self` and so outlives the reference.
            unsafe { &*self.first.add(index) }
        }
    }

    /// Prefetches memory that is written soon: a store that waits for memory holds up the program's
    /// own stores behind it.
    #[inline]
    fn prefetch(slot: *const Record) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has the instruction, which is a hint and accepts any
        // address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(slot.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = slot;
    }

    /// Returns a spare run of this capacity, if there is one.
    fn spare(capacity: usize) -> Option<MmapMut> {
        let mut waiting = spare_guard();
        let position = waiting.iter().rposition(|run| run.capacity == capacity)?;
        Some(waiting.remove(position).map)
    }

    /// Maps small pages and populates them. Miri can map memory but not populate it.
    fn map_present(bytes: usize) -> Option<MmapMut> {
        let mut options = MmapOptions::new();
        options.len(bytes);
        if !cfg!(miri) {
            options.populate();
        }
        options.map_anon().ok()
    }

    /// Maps a huge page: reserves twice its size, and uses the aligned part only.
    fn map_huge(bytes: usize) -> Option<MmapMut> {
        let map = MmapOptions::new().len(bytes + HUGE_PAGE).map_anon().ok()?;
        // Best effort: a system without huge pages, or one that refuses, uses small ones and faults
        // them in later.
        #[cfg(all(target_os = "linux", not(miri)))]
        for advice in [Advice::HugePage, Advice::PopulateWrite] {
            let _ = map.advise_range(advice, to_huge_page(&map), bytes);
        }
        Some(map)
    }

    fn to_huge_page(map: &MmapMut) -> usize {
        map.as_ptr().align_offset(HUGE_PAGE)
    }

    impl Drop for Slots {
        fn drop(&mut self) {
            let Some(map) = self.map.take() else { return };
            let capacity = self.capacity;
            let most = MOST_SPARE.iter().find(|(size, _)| *size == capacity);
            let mut waiting = spare_guard();
            let count = waiting.iter().filter(|run| run.capacity == capacity);
            if most.is_some_and(|(_, most)| count.count() < *most) {
                waiting.push(Spare { capacity, map });
            }
        }
    }

    impl fmt::Debug for Slots {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter
                .debug_struct("Slots")
                .field("capacity", &self.capacity)
                .finish_non_exhaustive()
        }
    }
}

#[cfg(loom)]
use self::modelled::Slots;
#[cfg(loom)]
pub(crate) use self::modelled::{SpareGuard, spare_guard};

#[cfg(loom)]
mod modelled {
    use loom::cell::UnsafeCell;

    use super::Record;

    /// A model check has no spare runs.
    pub(crate) struct SpareGuard;

    /// Returns a stand-in for the lock.
    pub(crate) fn spare_guard() -> SpareGuard {
        SpareGuard
    }

    /// The same as `mapped::Slots`, in cells whose accesses loom checks against each other.
    #[derive(Debug)]
    pub(super) struct Slots {
        cells: Vec<UnsafeCell<Record>>,
    }

    // SAFETY: as for `mapped::Slots`; loom fails the test if two threads access one cell.
    unsafe impl Sync for Slots {}

    impl Slots {
        pub(super) fn new(capacity: usize) -> Option<Self> {
            let empty = Record {
                start: 0,
                end: 0,
                name: 0,
                inputs: 0,
                stack: 0,
                sequence: 0,
            };
            Some(Self {
                cells: (0..capacity).map(|_| UnsafeCell::new(empty)).collect(),
            })
        }

        pub(super) fn capacity(&self) -> usize {
            self.cells.len()
        }

        pub(super) unsafe fn write(&self, index: usize, record: Record) {
            // SAFETY: as in `mapped::Slots::write`; loom fails the test if two threads access one
            // cell.
            self.cells[index].with_mut(|slot| unsafe { *slot = record });
        }

        pub(super) unsafe fn get(&self, index: usize) -> &Record {
            // SAFETY: as in `mapped::Slots::get`.
            self.cells[index].with(|slot| unsafe { &*slot })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(start: u64) -> Record {
        Record {
            start,
            end: start + 1,
            name: 1,
            inputs: 0,
            stack: 0,
            sequence: u32::MAX,
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn runs_of_the_usual_sizes_are_used_again() {
        let place = |chunk: &Chunk| {
            // SAFETY: only this thread uses the chunk.
            assert!(unsafe { chunk.push(record(0)) });
            std::ptr::from_ref(chunk.record(0))
        };
        for capacity in [FIRST, FIRST * GROWTH, FULL] {
            let before = Chunk::new(capacity).unwrap();
            let first = place(&before);
            drop(before);
            let after = Chunk::new(capacity).unwrap();
            assert_eq!((after.len(), place(&after)), (0, first), "{capacity}");
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn a_full_chunk_refuses_and_keeps_what_it_has() {
        let chunk = Chunk::new(2).unwrap();
        // SAFETY: only this thread uses the chunk.
        let taken: Vec<bool> = (0..3)
            .map(|start| unsafe { chunk.push(record(start)) })
            .collect();
        assert_eq!(taken, [true, true, false]);
        assert_eq!(
            chunk.records(9).copied().collect::<Vec<_>>(),
            [record(0), record(1)]
        );
    }

    #[cfg(loom)]
    #[test]
    fn a_reader_sees_whole_records_in_order() {
        loom::model(|| {
            let chunk = loom::sync::Arc::new(Chunk::new(2).unwrap());
            let reader = {
                let chunk = chunk.clone();
                loom::thread::spawn(move || {
                    for (index, found) in chunk.records(2).enumerate() {
                        assert_eq!(*found, record(index as u64));
                    }
                })
            };
            for start in 0..2 {
                // SAFETY: only this thread pushes.
                assert!(unsafe { chunk.push(record(start)) });
            }
            reader.join().unwrap();
        });
    }
}
