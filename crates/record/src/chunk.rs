//! Chunks: fixed runs of records, written by one thread and read by any.
//!
//! The owner writes record `n` and then publishes length `n + 1`; a reader sees the length first
//! and touches only records below it, which are never written again. Memory is taken from the
//! system with its pages present, and some runs are kept for the next recording, because a page
//! fault costs as much as half a scope.

#![expect(
    unsafe_code,
    reason = "a reader and the owner share one run of memory, split at the published length"
)]

use crate::budget;
use crate::raw::Record;
use crate::sync::{AtomicUsize, Ordering};

/// Records in the first chunk of a thread, 16 KiB: most threads record little.
pub(crate) const FIRST: usize = 512;

/// How much larger the next chunk is, up to the full size.
pub(crate) const GROWTH: usize = 16;

/// Records in a chunk of full size: one huge page of 2 MiB, which is made present in a fraction of
/// the time that its 512 small pages would take.
pub(crate) const FULL: usize = 65_536;

/// A run of records with the length that is published so far.
#[derive(Debug)]
pub(crate) struct Chunk {
    len: AtomicUsize,
    slots: Slots,
}

impl Chunk {
    /// Makes an empty chunk for `capacity` records, or none if the system has no memory.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        Some(Self {
            len: AtomicUsize::new(0),
            slots: Slots::new(capacity)?,
        })
    }

    /// Makes an empty chunk for `wanted` records or as many as the budget has room for, or none if
    /// that, or the system, has no room at all.
    pub(crate) fn within_budget(wanted: usize) -> Option<Self> {
        let unit = size_of::<Record>();
        let capacity = budget::charge(wanted * unit, unit) / unit;
        (capacity > 0).then(|| Self::new(capacity)).flatten()
    }

    /// Appends a record, or returns false if the chunk is full.
    ///
    /// # Safety
    /// Only one thread at a time may call this: the owner of the buffer that the chunk is in, or
    /// whoever holds that buffer's lock, if the chunk is for what ends on other threads.
    #[inline]
    pub(crate) unsafe fn push(&self, record: Record) -> bool {
        // Relaxed: the caller alone writes the length, so it reads its own value.
        let len = self.len.load(Ordering::Relaxed);
        if len == self.slots.capacity() {
            return false;
        }
        // SAFETY: `len` is below the capacity; no reader touches a slot at or beyond the published
        // length, and no other thread writes (see above).
        unsafe { self.slots.write(len, record) };
        // Release: pairs with the acquire in `len`, so that whoever sees this length sees the
        // record.
        self.len.store(len + 1, Ordering::Release);
        true
    }

    /// Returns how many records fit.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Returns the number of records that can be read.
    pub(crate) fn len(&self) -> usize {
        // Acquire: pairs with the release in `push`.
        self.len.load(Ordering::Acquire)
    }

    /// Walks the first `len` records; fewer if fewer are published.
    pub(crate) fn records(&self, len: usize) -> impl Iterator<Item = &Record> {
        (0..len.min(self.len())).map(|index| {
            // SAFETY: the slot is below the published length, so it is written, and it is never
            // written again while the chunk lives.
            unsafe { self.slots.get(index) }
        })
    }

    /// Returns the record at `index`.
    ///
    /// # Panics
    /// When it is not published.
    #[inline]
    pub(crate) fn record(&self, index: usize) -> &Record {
        assert!(index < self.len(), "record {index} is not published");
        // SAFETY: as in `records`.
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

    /// Runs that wait for their next use: at most 7 MiB, for what a cycle of a schedule mostly
    /// takes. A fresh run costs little more where it is used to its end, and what waits is memory
    /// that the host lacks.
    static SPARE: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

    /// Which sizes wait, and how many of each: those that a thread takes one after the other.
    const MOST_SPARE: [(usize, usize); 3] = [(FIRST, 16), (FIRST * GROWTH, 3), (FULL, 3)];

    /// A run that waits, with its size.
    pub(crate) struct Spare {
        capacity: usize,
        map: MmapMut,
    }

    /// The size and alignment of a huge page; a full chunk is as large.
    const HUGE_PAGE: usize = 2 << 20;
    const _: () = assert!(FULL * size_of::<Record>() == HUGE_PAGE);

    /// How many records ahead memory is fetched: two lines of the cache.
    const AHEAD: usize = 4;

    /// Keeps every other thread from the spare runs.
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

    // SAFETY: `Slots` owns the memory behind its pointer; the callers of `write` and `read` keep
    // two threads from touching one slot at the same time.
    unsafe impl Send for Slots {}
    // SAFETY: as above.
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
        /// `index` is below the capacity and nobody else touches that slot meanwhile.
        #[inline]
        pub(super) unsafe fn write(&self, index: usize, record: Record) {
            // Field by field: written as one value, the record is first put together in memory, in
            // pieces, and loading it from there as a whole stalls for a tenth of a
            // scope. SAFETY: the map is page-aligned and holds `capacity` records; the
            // caller has the slot for itself.
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
        /// The slot was written, and nobody writes it while the reference lives.
        #[inline]
        pub(super) unsafe fn get(&self, index: usize) -> &Record {
            // SAFETY: as in `write`; the memory is this value's own and outlives the reference.
            unsafe { &*self.first.add(index) }
        }
    }

    /// Has the processor fetch what will be written soon: a store that waits for memory holds up
    /// the host's own stores behind it.
    #[inline]
    fn prefetch(slot: *const Record) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has the instruction, which is a hint for any address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(slot.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = slot;
    }

    /// Returns a run that was used before, if one of this size waits.
    fn spare(capacity: usize) -> Option<MmapMut> {
        let mut waiting = spare_guard();
        let position = waiting.iter().rposition(|run| run.capacity == capacity)?;
        Some(waiting.remove(position).map)
    }

    /// Maps small pages. Miri has memory, and none of the ways to make it present.
    fn map_present(bytes: usize) -> Option<MmapMut> {
        let mut options = MmapOptions::new();
        options.len(bytes);
        if !cfg!(miri) {
            options.populate();
        }
        options.map_anon().ok()
    }

    /// Maps a huge page: twice its size, of which the part that is aligned to one is used and the
    /// rest never touched.
    fn map_huge(bytes: usize) -> Option<MmapMut> {
        let map = MmapOptions::new().len(bytes + HUGE_PAGE).map_anon().ok()?;
        // Advice, not need: a system without huge pages, or one that refuses, gives small ones, a
        // little later.
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

    /// A model has no spare runs.
    pub(crate) struct SpareGuard;

    /// Returns what stands for the lock.
    pub(crate) fn spare_guard() -> SpareGuard {
        SpareGuard
    }

    /// The same as `mapped::Slots`, in cells whose accesses loom checks against each other.
    #[derive(Debug)]
    pub(super) struct Slots {
        cells: Vec<UnsafeCell<Record>>,
    }

    // SAFETY: as for `mapped::Slots`; loom fails the test if it does not hold.
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
            // SAFETY: as in `mapped::Slots::write`; loom fails the test if it does not hold.
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
            // SAFETY: this test is the only thread.
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
        // SAFETY: this test is the only thread.
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
                // SAFETY: this thread alone pushes.
                assert!(unsafe { chunk.push(record(start)) });
            }
            reader.join().unwrap();
        });
    }
}
