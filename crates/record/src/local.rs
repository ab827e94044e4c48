//! The owner's side of a thread's buffer: begins and ends scopes on the calling thread.
//!
//! A scope enters the thread's open stack when it begins, and is appended to a chunk as one record
//! when it ends. Everything slow (the first event, a full chunk, a new list of inputs) is in a cold
//! function of its own.

#![expect(
    unsafe_code,
    reason = "only the owner of a chunk may push, and types cannot express ownership by a thread"
)]

use std::cell::{Cell, OnceCell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mindprof_model::LossCause;
use rustc_hash::FxHashMap;

use crate::buffer::Buffer;
use crate::chunk::{Chunk, FIRST, FULL, GROWTH};
use crate::clock::{counter, ticks};
use crate::gate::{self, Gate};
use crate::inputs::{InputsRewriter, KnownInputs};
use crate::limit::{Admission, Limiter};
use crate::lost::LostKind;
use crate::name::Name;
use crate::open::{OpenEntry, OpenSlot};
use crate::raw::{MemoryDevice, Record, Stack};
use crate::{budget, fast_thread_local, registry};

fast_thread_local! {
    static LOCAL: OnceCell<Local> = OnceCell::new()
}

/// The start time and the open slot of a scope, which its guard keeps. Two words, so that they are
/// returned in registers.
pub(crate) type StartedScope = (u64, OpenSlot);

/// The timestamp given to the first block allocated directly in a scope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstBlock {
    /// The start of the scope.
    AtStart,
    /// The time at which it is reported, as for every other block.
    WhenReported,
}

/// Begins a scope on this thread. If there is no room, it is counted as lost; if the recording is
/// over or the thread is exiting, it is ignored.
#[inline(never)]
pub(crate) fn begin(
    gate: Gate,
    name: Name,
    inputs: u32,
    stack: Stack,
    first_block: FirstBlock,
) -> StartedScope {
    if let Some(local) = here()
        && local.epoch.get() == gate.epoch()
        && !name.is_refused()
        && inputs != Record::NO_ROOM
        && stack != Stack::NO_ROOM
        && let Some(start) = counter()
        && let Some(index) = (local.buffer.open).push_first(open_entry(start, name, inputs, stack))
    {
        return local.started(start, index, first_block);
    }
    begin_slowly(gate, name, inputs, stack, first_block)
}

#[cold]
#[inline(never)]
fn begin_slowly(
    gate: Gate,
    name: Name,
    inputs: u32,
    stack: Stack,
    first_block: FirstBlock,
) -> StartedScope {
    let started = with(|local| {
        if !local.follow(gate) {
            return None;
        }
        if name.is_refused() {
            let kind = LostKind::of_stack(stack.raw());
            local.buffer.lost.add(kind, LossCause::Names, 1);
            return None;
        }
        if inputs == Record::NO_ROOM || stack == Stack::NO_ROOM {
            local.buffer.lost.add(LostKind::Scope, LossCause::Budget, 1);
            return None;
        }
        let start = ticks();
        let index = local
            .buffer
            .open
            .push(open_entry(start, name, inputs, stack));
        Some(local.started(start, index, first_block))
    });
    started.flatten().unwrap_or((0, OpenSlot::NOWHERE))
}

#[inline]
fn open_entry(start: u64, name: Name, inputs: u32, stack: Stack) -> OpenEntry {
    OpenEntry {
        start,
        name: name.raw(),
        stack: stack.raw(),
        inputs,
    }
}

/// Decides about a scope that begins on this thread under a limit. Returns the key of the thread
/// too; a thread that is exiting records nothing anyway.
pub(crate) fn enter(gate: Gate, name: Name) -> (Admission, u32) {
    let entered = with(|local| {
        let elsewhere = &local.buffer.left_elsewhere;
        if elsewhere.load(Ordering::Relaxed) != 0 {
            local.limiter.leave(elsewhere.swap(0, Ordering::Relaxed));
        }
        (local.limiter.enter(name, gate.epoch()), local.thread)
    });
    entered.unwrap_or((Admission::Uncounted, 0))
}

/// Notes that an operator that [`enter`] counted on a thread has ended.
#[cold]
pub(crate) fn leave(thread: u32) {
    let left = with(|local| {
        let is_own = local.thread == thread;
        if is_own {
            local.limiter.leave(1);
        }
        is_own
    });
    if left != Some(true) {
        registry::leave_elsewhere(thread);
    }
}

/// Ends a scope of recording `epoch`.
#[inline]
pub(crate) fn end(record: Record, epoch: u32, slot: OpenSlot) {
    let name_and_inputs = pair(record.name, record.inputs);
    let sequence_and_epoch = pair(record.sequence, epoch);
    end_words(
        record.start,
        record.end,
        name_and_inputs,
        sequence_and_epoch,
        slot,
        record.stack,
    );
}

/// Ends a scope given as plain words, which travel in registers. A reference would pin the guard to
/// memory, which costs time even while nothing records.
#[inline(never)]
fn end_words(
    start: u64,
    end: u64,
    name_and_inputs: u64,
    sequence_and_epoch: u64,
    slot: OpenSlot,
    stack: u32,
) {
    let (record, epoch) = record_of(start, end, name_and_inputs, sequence_and_epoch, stack);
    if let Some(local) = here()
        && local.epoch.get() == epoch
        && local.thread == slot.thread()
        && local.push(record)
    {
        local.just_begun.set(0);
        local.buffer.open.pop(slot.index());
        return;
    }
    end_slowly(start, end, name_and_inputs, sequence_and_epoch, slot, stack);
}

#[inline]
fn record_of(
    start: u64,
    end: u64,
    name_and_inputs: u64,
    sequence_and_epoch: u64,
    stack: u32,
) -> (Record, u32) {
    let (name, inputs) = halves(name_and_inputs);
    let (sequence, epoch) = halves(sequence_and_epoch);
    let record = Record {
        start,
        end,
        name,
        inputs,
        stack,
        sequence,
    };
    (record, epoch)
}

#[inline]
const fn pair(low: u32, high: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

#[inline]
const fn halves(pair: u64) -> (u32, u32) {
    (pair as u32, (pair >> 32) as u32)
}

#[cold]
#[inline(never)]
fn end_slowly(
    start: u64,
    end: u64,
    name_and_inputs: u64,
    sequence_and_epoch: u64,
    slot: OpenSlot,
    stack: u32,
) {
    let (record, epoch) = record_of(start, end, name_and_inputs, sequence_and_epoch, stack);
    let end_here = |local: &OnceCell<Local>| {
        let local = local.get();
        local.is_some_and(|local| local.end(record, epoch, slot))
    };
    // A thread that is exiting has no buffer left; a scope that ends then counts as unfinished.
    if LOCAL.try_with(end_here) == Ok(false) {
        registry::end_elsewhere(record, epoch, slot);
    }
}

/// Appends an allocation or a free, given as plain words that travel in registers. A record would
/// be assembled in memory piece by piece, and loading it as a whole would stall.
#[inline(never)]
pub(crate) fn push_memory(gate: Gate, address: u64, bytes: i64, total: u64, device: MemoryDevice) {
    if let Some(local) = here()
        && local.epoch.get() == gate.epoch()
        && let Some(time) = local.allocation_time(bytes).or_else(counter)
        && local.push(Record::memory(time, address, bytes, total, device))
    {
        local.just_begun.set(0);
        return;
    }
    push_memory_slowly(gate, address, bytes, total, device);
}

/// Records how much memory the allocator of a device holds, if this thread's chunk does not tell it
/// yet.
#[inline]
pub(crate) fn push_reserved(gate: Gate, device: MemoryDevice, bytes: u64) {
    if let Some(local) = here()
        && local.epoch.get() == gate.epoch()
        && local.reserved.get() == Some((device, bytes))
    {
        return;
    }
    let _ = with(|local| {
        let is_written =
            local.follow(gate) && local.push_or_leave(Record::reserved(ticks(), bytes, device));
        // A new chunk begins without it, so it is set last.
        local.reserved.set(is_written.then_some((device, bytes)));
    });
}

#[cold]
#[inline(never)]
fn push_memory_slowly(gate: Gate, address: u64, bytes: i64, total: u64, device: MemoryDevice) {
    // A thread that is exiting has no buffer left, so its last frees are not recorded.
    let _ = with(|local| {
        if !local.follow(gate) {
            return false;
        }
        let time = local.allocation_time(bytes).unwrap_or_else(ticks);
        local.just_begun.set(0);
        let record = Record::memory(time, address, bytes, total, device);
        local.push(record) || local.push_to_new_chunk(record)
    });
}

/// Records the storage addresses of the input list that this thread looked up last, keyed by the
/// start of its scope. Returns the scope's inputs, flagged if the addresses could be written.
#[inline(never)]
pub(crate) fn push_storages(start: u64, name: Name, inputs: u32) -> u32 {
    let is_written = with(|local| local.push_storages(start, name)) == Some(true);
    let inputs = inputs & !(Record::NEW_STORAGES | Record::HAS_STORAGES);
    if is_written {
        inputs | Record::HAS_STORAGES
    } else {
        inputs
    }
}

/// Appends a side record. It is no event, so nothing is counted as lost if there is no room.
#[inline(never)]
pub(crate) fn push_side_record(gate: Gate, record: Record) {
    let _ = with(|local| local.follow(gate) && local.push_or_leave(record));
}

/// Interns the input list that the closure writes for a scope of this name, and returns its number.
#[inline(never)]
pub(crate) fn intern_inputs(
    gate: Gate,
    name: Name,
    inputs: impl FnOnce(&mut InputsRewriter<'_>),
) -> u32 {
    with(|local| local.intern_inputs(gate, name, inputs)).unwrap_or(Record::NO_ROOM)
}

/// Interns the stack of `frame` called from `caller` on this thread, and returns its number.
#[inline(never)]
pub(crate) fn push_frame(gate: Gate, caller: Stack, frame: Name) -> Stack {
    with(|local| local.push_frame(gate, caller, frame)).unwrap_or(Stack::NO_ROOM)
}

/// Counts calls of this thread that could not be kept.
#[cold]
pub(crate) fn count_lost_calls(gate: Gate, cause: LossCause, calls: u64) {
    // A thread that is exiting has no buffer left, and records nothing that could be missed.
    let _ = with(|local| {
        if local.follow(gate) {
            local.buffer.lost.add(LostKind::Call, cause, calls);
        }
    });
}

/// Returns the buffer of this thread, if it has one.
pub(crate) fn own_buffer() -> Option<Arc<Buffer>> {
    let own = |local: &OnceCell<Local>| local.get().map(|local| Arc::clone(&local.buffer));
    LOCAL.try_with(own).ok().flatten()
}

/// Returns the state of this thread if it has recorded before, is not exiting and (with the feature
/// `loaded`) has its address cached, so that no TLS function is called. If this returns `None`, use
/// [`with`].
#[inline]
fn here<'a>() -> Option<&'a Local> {
    let found = LOCAL.find()?;
    // SAFETY: `find` returns the address of this thread's variable, which is valid until the thread
    // exits. The reference stays on this thread, and no caller in this module ends the thread while
    // holding it.
    unsafe { found.as_ref() }.get()
}

/// Calls `action` with the state of this thread, creating it at first use. Returns `None` if the
/// thread is exiting.
#[inline]
fn with<T>(action: impl FnOnce(&Local) -> T) -> Option<T> {
    let run = |local: &OnceCell<Local>| action(local.get_or_init(Local::new));
    LOCAL.try_with(run).ok()
}

/// The state of one recording thread: its shared buffer, the chunk it writes to, and the tables
/// that only it reads. It is a thread-local variable, created at the thread's first event.
pub(crate) struct Local {
    buffer: Arc<Buffer>,
    thread: u32,
    epoch: Cell<u32>,
    /// The start of the innermost open scope if its first block gets that time, until something
    /// else is recorded; zero otherwise.
    just_begun: Cell<u64>,
    /// The last device whose reserved memory the chunk tells, and how much that is.
    reserved: Cell<Option<(MemoryDevice, u64)>>,
    /// The chunk to write to, or null. `chunk_owner` keeps it alive.
    chunk: Cell<*const Chunk>,
    chunk_owner: RefCell<Option<Arc<Chunk>>>,
    /// The last search for an old chunk that found none: which ones windows allowed to give up, and
    /// how many events are lost before the next search.
    last_search: Cell<(u64, u32)>,
    inputs: RefCell<KnownInputs>,
    stacks: RefCell<FxHashMap<(Stack, Name), Stack>>,
    limiter: Limiter,
}

impl Local {
    fn new() -> Self {
        let buffer = registry::register_thread();
        Self {
            thread: buffer.index,
            buffer,
            epoch: Cell::new(0),
            just_begun: Cell::new(0),
            reserved: Cell::new(None),
            chunk: Cell::new(ptr::null()),
            chunk_owner: RefCell::default(),
            last_search: Cell::new((0, 0)),
            inputs: RefCell::default(),
            stacks: RefCell::default(),
            limiter: Limiter::default(),
        }
    }

    #[inline]
    fn started(&self, start: u64, index: u32, first_block: FirstBlock) -> StartedScope {
        let is_taken_now = first_block == FirstBlock::AtStart;
        self.just_begun.set(if is_taken_now { start } else { 0 });
        (start, OpenSlot::new(self.thread, index))
    }

    /// Returns the time of an allocation if it differs from the current time.
    #[inline]
    fn allocation_time(&self, bytes: i64) -> Option<u64> {
        let begun = self.just_begun.get();
        // A window that opened since must not get a time before its own start, or it would drop the
        // record.
        (bytes > 0 && begun > gate::last_opening()).then_some(begun)
    }

    fn push_storages(&self, start: u64, name: Name) -> bool {
        let push = |record| self.push_or_leave(record);
        let known = self.inputs.try_borrow_mut();
        known.is_ok_and(|mut known| known.write_storages(start, name, push))
    }

    fn push_or_leave(&self, record: Record) -> bool {
        self.push(record) || self.push_to_new_chunk_if_room(record)
    }

    /// Empties the buffer if the gate belongs to a later recording than the last event. Returns
    /// false if it belongs to an earlier one: between loading the gate and recording something, the
    /// caller may run code that ends the recording and begins another, which now owns the buffer.
    #[inline]
    fn follow(&self, gate: Gate) -> bool {
        if self.epoch.get() < gate.epoch() {
            self.begin_epoch(gate.epoch());
        }
        self.epoch.get() == gate.epoch()
    }

    /// Ends a scope of this thread. Returns false if the scope began on another thread.
    fn end(&self, record: Record, epoch: u32, slot: OpenSlot) -> bool {
        if self.thread != slot.thread() {
            return false;
        }
        self.just_begun.set(0);
        // The windows of an earlier recording have closed and reported the scope as unfinished.
        if self.epoch.get() == epoch {
            if !self.push(record) {
                self.push_to_new_chunk(record);
            }
            self.buffer.open.pop(slot.index());
        }
        true
    }

    #[inline]
    fn push(&self, record: Record) -> bool {
        // SAFETY: `chunk_owner` keeps the chunk alive. It belongs to this thread's buffer and
        // `Local` never leaves its thread, so this thread is the only one that pushes to it.
        unsafe { (self.chunk.get().as_ref()).is_some_and(|chunk| chunk.push(record)) }
    }

    #[cold]
    fn push_to_new_chunk(&self, record: Record) -> bool {
        let has_room = self.push_to_new_chunk_if_room(record);
        if !has_room {
            self.buffer.count_lost(&record, || self.buffer.contents());
        }
        has_room
    }

    #[cold]
    fn push_to_new_chunk_if_room(&self, record: Record) -> bool {
        let wanted = match self.chunk_owner.borrow().as_ref() {
            Some(chunk) => (chunk.capacity() * GROWTH).min(FULL),
            None => FIRST,
        };
        let Some(chunk) = self.chunk_within_budget(wanted).map(Arc::new) else {
            return false;
        };
        // SAFETY: no other thread can reach the chunk yet.
        unsafe { chunk.push(record) };
        self.buffer.contents().chunks.push(Arc::clone(&chunk));
        self.set_chunk(Some(chunk));
        true
    }

    /// Allocates a chunk, in place of the oldest one of the recording if the budget is spent and the
    /// windows keep their last events.
    fn chunk_within_budget(&self, wanted: usize) -> Option<Chunk> {
        // The search for an old chunk takes locks, so it is not repeated for every lost event.
        const PATIENCE: u32 = 1024;
        if let Some(chunk) = Chunk::within_budget(wanted) {
            return Some(chunk);
        }
        let (before, waits) = self.last_search.get();
        if waits > 0 && before == gate::recycle_before() {
            self.last_search.set((before, waits - 1));
            return None;
        }
        if registry::forget_oldest(self.epoch.get()) {
            return Chunk::within_budget(wanted);
        }
        self.last_search.set((gate::recycle_before(), PATIENCE));
        None
    }

    #[cold]
    fn begin_epoch(&self, epoch: u32) {
        self.last_search.set((0, 0));
        self.buffer.begin_epoch(epoch);
        self.set_chunk(None);
        self.stacks.borrow_mut().clear();
        self.epoch.set(epoch);
    }

    fn set_chunk(&self, chunk: Option<Arc<Chunk>>) {
        self.reserved.set(None);
        self.chunk
            .set(chunk.as_ref().map_or(ptr::null(), Arc::as_ptr));
        *self.chunk_owner.borrow_mut() = chunk;
    }

    fn intern_inputs(
        &self,
        gate: Gate,
        name: Name,
        inputs: impl FnOnce(&mut InputsRewriter<'_>),
    ) -> u32 {
        if !self.follow(gate) {
            return Record::NO_ROOM;
        }
        // The closure is the caller's code: if it opens a scope of its own, that scope gets no
        // inputs.
        let Ok(mut known) = self.inputs.try_borrow_mut() else {
            return 0;
        };
        known.intern(gate, name, &self.buffer, inputs)
    }

    fn push_frame(&self, gate: Gate, caller: Stack, frame: Name) -> Stack {
        if !self.follow(gate) {
            return Stack::NO_ROOM;
        }
        let mut known = self.stacks.borrow_mut();
        match known.get(&(caller, frame)) {
            Some(&stack) => stack,
            None => self.add_stack(&mut known, caller, frame),
        }
    }

    #[cold]
    fn add_stack(
        &self,
        known: &mut FxHashMap<(Stack, Name), Stack>,
        caller: Stack,
        frame: Name,
    ) -> Stack {
        // The shared node, and an entry in this thread's table, which is three quarters full on
        // average.
        const BYTES: usize = size_of::<[u32; 2]>() + 4 * size_of::<[u32; 3]>() / 3 + 1;
        let is_known = caller != Stack::NO_ROOM && !frame.is_refused();
        if !is_known || budget::charge(BYTES, BYTES) == 0 {
            return Stack::NO_ROOM;
        }
        let stacks = &mut self.buffer.contents().stacks;
        stacks.push([caller.raw(), frame.raw()]);
        let stack = Stack::from_len(stacks.len());
        known.insert((caller, frame), stack);
        stack
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.buffer.retire();
    }
}
