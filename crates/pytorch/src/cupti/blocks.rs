//! The buffers that CUPTI fills, and the two functions by which it asks for them and hands them back.
//!
//! CUPTI calls on its own threads and on those of the program, at any time from the first
//! registration on, even after a recording has ended: nothing here is ever removed, and what comes
//! back late is used again. No lock is held while CUPTI or Kineto is called.

#![expect(
    unsafe_code,
    reason = "CUPTI writes into memory of ours, and hands it back by address"
)]

use std::alloc::{Layout, alloc, dealloc};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem;
use std::ops::AddAssign;
use std::panic::catch_unwind;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use mindprof_record::ticks;

use super::calls::{CallRecord, Run};
use super::interface::Interface;
use super::records::called;

/// The size of a buffer. NVIDIA recommends 1 to 10 MB.
pub(super) const BLOCK_BYTES: usize = 4 << 20;

/// The alignment of a buffer, so that the system can back it by huge pages.
const BLOCK_ALIGNMENT: usize = 2 << 20;

/// The most buffers that are kept for later while nothing is recorded.
const MOST_SPARE: usize = 8;

/// The buffers that are ready when a recording starts, so that the program does not wait for memory
/// in its first launches.
const READY: usize = 2;

/// A buffer that is filled less than this is copied, and used again.
const SPARSE_BYTES: usize = BLOCK_BYTES / 4;

/// The buffers of the process.
pub(super) static BLOCKS: Blocks = Blocks::new();

/// Buffers, and what they hold of the open collection.
pub(super) struct Blocks(Mutex<State>);

struct State {
    /// The addresses of those that CUPTI has.
    given: Vec<usize>,
    spare: Vec<Block>,
    filled: VecDeque<Filled>,
    open: Option<Open>,
    last_collection: u64,
}

/// The open collection.
struct Open {
    collection: u64,
    budget: usize,
    keep: KeepRecords,
    kept: usize,
    lost: Lost,
    evicted: Vec<Evicted>,
}

/// The records that stay if not all fit into the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepRecords {
    /// The first ones. The others are lost.
    First,
    /// The last ones. The others are lost only if the window begins before them.
    Last,
}

/// Records that made room for later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evicted {
    /// The time in ticks at which CUPTI handed them back.
    pub(super) until: u64,
    pub(super) count: Count,
}

/// A number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) calls: u64,
    /// Work of devices, and of CUPTI itself.
    pub(super) others: u64,
}

impl Count {
    pub(super) fn all(self) -> u64 {
        self.calls + self.others
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.others += other.others;
    }
}

/// The most entries that are kept of records that made room. Beyond, neighbours are merged.
const MOST_EVICTED: usize = 1024;

/// Records that are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// There was no room for them in the budget.
    pub(super) over_budget: Count,
    /// CUPTI itself dropped them.
    pub(super) dropped: u64,
}

/// The result of a collection.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) filled: Vec<Filled>,
    pub(super) lost: Lost,
    pub(super) evicted: Vec<Evicted>,
}

impl Blocks {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(State {
            given: Vec::new(),
            spare: Vec::new(),
            filled: VecDeque::new(),
            open: None,
            last_collection: 0,
        }))
    }

    /// Opens a collection that keeps at most `budget` bytes, and returns its number. One that is open
    /// ends without results.
    pub(super) fn open(&self, budget: usize, keep: KeepRecords) -> u64 {
        let missing = READY.saturating_sub(self.lock().spare.len());
        let ready: Vec<Block> = (0..missing).filter_map(|_| Block::ready()).collect();
        let mut state = self.lock();
        state.spare.extend(ready);
        state.last_collection += 1;
        let collection = state.last_collection;
        state.open = Some(Open {
            collection,
            budget,
            keep,
            kept: 0,
            lost: Lost::default(),
            evicted: Vec::new(),
        });
        let earlier = mem::take(&mut state.filled);
        drop(state);
        drop(earlier);
        collection
    }

    /// Ends a collection, and returns what it has, or `None` if it has ended.
    pub(super) fn close(&self, collection: u64) -> Option<Taken> {
        let mut state = self.lock();
        let is_open = |open: &mut Open| open.collection == collection;
        let open = state.open.take_if(is_open)?;
        let filled = mem::take(&mut state.filled);
        let spare = state.spare.len().min(MOST_SPARE);
        let beyond = state.spare.split_off(spare);
        drop(state);
        drop(beyond);
        Some(Taken {
            filled: filled.into(),
            lost: open.lost,
            evicted: open.evicted,
        })
    }

    /// Takes back buffers that were read.
    pub(super) fn recycle(&self, filled: Vec<Filled>) {
        let whole = filled.into_iter().filter_map(|it| match it.memory {
            Memory::Block(block) => Some(block),
            Memory::Copied(_) | Memory::Calls(_) => None,
        });
        let mut freed: Vec<Block> = whole.collect();
        let mut state = self.lock();
        let room = MOST_SPARE.saturating_sub(state.spare.len());
        let kept = freed.len().min(room);
        state.spare.extend(freed.drain(..kept));
    }

    /// Returns a buffer for CUPTI to fill, or null if there is no memory.
    pub(super) fn give(&self) -> *mut u8 {
        let spare = self.lock().spare.pop();
        let Some(block) = spare.or_else(Block::new) else {
            return ptr::null_mut();
        };
        let start = block.into_raw();
        self.lock().given.push(start.addr());
        start
    }

    /// Takes a buffer back from CUPTI with `bytes` of records. Returns false if it is not one of
    /// ours.
    ///
    /// # Safety
    /// CUPTI hands the buffer back and does not use it any more; the records in its first `bytes`
    /// bytes are initialized.
    pub(super) unsafe fn take_back(
        &self,
        interface: &Interface,
        buffer: *mut u8,
        bytes: usize,
    ) -> bool {
        let mut state = self.lock();
        let place = state.given.iter().position(|it| *it == buffer.addr());
        let Some(place) = place else {
            return false;
        };
        state.given.swap_remove(place);
        let is_wanted = bytes > 0 && state.open.is_some();
        drop(state);
        // SAFETY: `give` made it of a block, and it was handed back.
        let Some(block) = (unsafe { Block::from_raw(buffer) }) else {
            return true;
        };
        let bytes = bytes.min(BLOCK_BYTES);
        let is_sparse = bytes <= SPARSE_BYTES;
        if !is_wanted {
            self.spare(block);
            return true;
        }
        // SAFETY: the caller guarantees initialized bytes.
        let filled = unsafe {
            if is_sparse {
                let copied = Filled::copied(&block, bytes);
                self.spare(block);
                copied
            } else {
                Filled::whole(block, bytes)
            }
        };
        self.keep(interface, filled);
        true
    }

    /// Keeps a buffer if it fits into the budget, or if earlier ones may make room for it.
    pub(super) fn keep(&self, interface: &Interface, filled: Filled) {
        let cost = filled.cost();
        let mut evicted = Vec::new();
        let mut refused = None;
        let mut state = self.lock();
        let State {
            filled: kept, open, ..
        } = &mut *state;
        if let Some(open) = open {
            let keeps_last = open.keep == KeepRecords::Last && cost <= open.budget;
            while keeps_last && open.kept + cost > open.budget {
                let Some(oldest) = kept.pop_front() else {
                    break;
                };
                open.kept = open.kept.saturating_sub(oldest.cost());
                evicted.push(oldest);
            }
            if open.kept + cost <= open.budget {
                open.kept += cost;
                kept.push_back(filled);
            } else {
                refused = Some(filled);
            }
        }
        drop(state);
        if let Some(refused) = refused {
            let count = refused.count(interface);
            self.lose(|lost| lost.over_budget += count);
            self.recycle(vec![refused]);
        }
        if evicted.is_empty() {
            return;
        }
        let counts = evicted.iter().map(|filled| Evicted {
            until: filled.handed_back,
            count: filled.count(interface),
        });
        let counts: Vec<Evicted> = counts.collect();
        if let Some(open) = &mut self.lock().open {
            open.evicted.extend(counts);
            merge(&mut open.evicted);
        }
        self.recycle(evicted);
    }

    /// Counts records that the open collection is missing.
    pub(super) fn lose(&self, count: impl FnOnce(&mut Lost)) {
        if let Some(open) = &mut self.lock().open {
            count(&mut open.lost);
        }
    }

    fn spare(&self, block: Block) {
        let mut state = self.lock();
        // Blocks beyond are freed without the lock.
        let is_kept = state.open.is_some() || state.spare.len() < MOST_SPARE;
        if is_kept {
            state.spare.push(block);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Merges neighbours if there are too many entries. The later time stands for both.
fn merge(evicted: &mut Vec<Evicted>) {
    if evicted.len() <= MOST_EVICTED {
        return;
    }
    let merged = evicted.chunks(2).map(|pair| {
        let mut both = pair[0];
        if let [_, second] = pair {
            both.until = both.until.max(second.until);
            both.count += second.count;
        }
        both
    });
    *evicted = merged.collect();
}

/// The memory of a buffer.
struct Block(NonNull<u8>);

// SAFETY: it owns its memory.
unsafe impl Send for Block {}

impl Block {
    const LAYOUT: Layout = match Layout::from_size_align(BLOCK_BYTES, BLOCK_ALIGNMENT) {
        Ok(layout) => layout,
        Err(_) => panic!("the alignment is a power of two"),
    };

    fn new() -> Option<Self> {
        // SAFETY: the size is not zero.
        let block = NonNull::new(unsafe { alloc(Self::LAYOUT) }).map(Self)?;
        block.advise();
        Some(block)
    }

    /// Returns a block whose pages are present.
    fn ready() -> Option<Self> {
        let block = Self::new()?;
        // SAFETY: the block owns as many bytes.
        unsafe { ptr::write_bytes(block.0.as_ptr(), 0, BLOCK_BYTES) };
        Some(block)
    }

    /// Asks the system for huge pages. It may refuse.
    #[cfg(target_os = "linux")]
    fn advise(&self) {
        // SAFETY: the range belongs to the block, and its contents stay as they are.
        unsafe { libc::madvise(self.0.as_ptr().cast(), BLOCK_BYTES, libc::MADV_HUGEPAGE) };
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "on Linux it is used")]
    fn advise(&self) {}

    fn into_raw(self) -> *mut u8 {
        let start = self.0.as_ptr();
        mem::forget(self);
        start
    }

    /// # Safety
    /// The address comes from `into_raw`, and is used no more.
    unsafe fn from_raw(start: *mut u8) -> Option<Self> {
        NonNull::new(start).map(Self)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and nothing else owns it.
        unsafe { dealloc(self.0.as_ptr(), Self::LAYOUT) }
    }
}

/// Records that CUPTI has written, or that were made of calls.
pub(super) struct Filled {
    memory: Memory,
    bytes: usize,
    /// The time in ticks at which CUPTI handed it back.
    handed_back: u64,
}

enum Memory {
    Block(Block),
    /// Words, because records are aligned to them.
    Copied(Box<[u64]>),
    Calls(Arc<Run>),
}

impl Filled {
    fn whole(block: Block, bytes: usize) -> Self {
        Self {
            memory: Memory::Block(block),
            bytes,
            handed_back: ticks(),
        }
    }

    /// Takes the calls that a thread has recorded so far.
    pub(super) fn calls(run: Arc<Run>) -> Self {
        let count = run.len();
        Self {
            bytes: count * size_of::<CallRecord>(),
            memory: Memory::Calls(run.shrunk(count)),
            handed_back: ticks(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns whether these are calls that threads have recorded, and no records of CUPTI's own.
    pub(super) fn is_calls(&self) -> bool {
        matches!(self.memory, Memory::Calls(_))
    }

    /// Returns the memory that it takes of the budget.
    pub(super) fn cost(&self) -> usize {
        match &self.memory {
            Memory::Block(_) => BLOCK_BYTES,
            Memory::Copied(_) => self.bytes,
            Memory::Calls(run) => run.bytes(),
        }
    }

    /// # Safety
    /// The first `bytes` bytes of the block are initialized.
    unsafe fn copied(block: &Block, bytes: usize) -> Self {
        let mut words = vec![0_u64; bytes.div_ceil(size_of::<u64>())].into_boxed_slice();
        // SAFETY: the block has as many bytes, as the caller guarantees, and so have the words.
        unsafe {
            ptr::copy_nonoverlapping(block.0.as_ptr(), words.as_mut_ptr().cast::<u8>(), bytes);
        }
        Self {
            memory: Memory::Copied(words),
            bytes,
            handed_back: ticks(),
        }
    }

    /// Calls `visit` with each record in turn.
    pub(super) fn each(&self, interface: &Interface, mut visit: impl FnMut(*const u8)) {
        let start = match &self.memory {
            Memory::Block(block) => block.0.as_ptr(),
            Memory::Copied(words) => words.as_ptr().cast_mut().cast(),
            Memory::Calls(run) => return run.each(self.bytes / size_of::<CallRecord>(), visit),
        };
        let mut record = ptr::null_mut();
        // SAFETY: CUPTI wrote the buffer, and only finds the next record in it.
        while unsafe { (interface.next)(start, self.bytes, &raw mut record) } == 0
            && !record.is_null()
        {
            visit(record);
        }
    }

    /// Returns the number of records that a profile would show.
    fn count(&self, interface: &Interface) -> Count {
        let mut calls = FxHashMap::default();
        let mut count = Count::default();
        self.each(interface, |record| {
            // SAFETY: CUPTI wrote the record, by the layout of its version.
            let Some((domain, number)) = (unsafe { called(record) }) else {
                count.others += 1;
                return;
            };
            let is_shown = || interface.rules.name(interface, domain, number).is_some();
            let is_shown = *calls.entry((domain, number)).or_insert_with(is_shown);
            count.calls += u64::from(is_shown);
        });
        count
    }
}

#[cfg(test)]
impl Filled {
    /// Records that a test wrote.
    pub(super) fn made(words: &[u64]) -> Self {
        Self {
            memory: Memory::Copied(words.into()),
            bytes: size_of_val(words),
            handed_back: 0,
        }
    }
}

/// CUPTI asks for a buffer.
pub(super) unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let given = catch_unwind(|| BLOCKS.give()).unwrap_or(ptr::null_mut());
    // SAFETY: CUPTI passes room for the three results.
    unsafe {
        buffer.write(given);
        size.write(if given.is_null() { 0 } else { BLOCK_BYTES });
        most.write(0);
    }
}

/// CUPTI hands a buffer back.
pub(super) unsafe extern "C" fn complete(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    bytes: usize,
) {
    let _ = catch_unwind(|| {
        let Ok(interface) = Interface::find() else {
            return;
        };
        // SAFETY: CUPTI hands over a buffer with as many bytes of records.
        if unsafe { BLOCKS.take_back(interface, buffer, bytes) } {
            let dropped = interface.dropped(context, stream);
            if dropped > 0 {
                BLOCKS.lose(|lost| lost.dropped += dropped);
            }
        } else {
            // Kineto gave it to CUPTI before. SAFETY: Kineto's function takes what CUPTI passes.
            unsafe { (interface.kineto_complete)(context, stream, buffer, size, bytes) }
        }
    });
}
