//! One thread's buffer, as its owner sees it: where scopes begin and end.
//!
//! A scope is announced to the thread's open stack when it begins and appended as a record when it ends. Everything that can
//! be slow (a first event, a full chunk, a new list of inputs) is in a cold function of its own.

#![expect(
    unsafe_code,
    reason = "the owner of a chunk may push; ownership is by thread, which types cannot say"
)]

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use mindprof_model::InputsEncoder;
use rustc_hash::FxHashMap;

use crate::buffer::Buffer;
use crate::chunk::{Chunk, FIRST, FULL, GROWTH, Record};
use crate::clock::ticks;
use crate::gate::Gate;
use crate::name::Name;
use crate::open::OpenEntry;
use crate::scope::OpenScope;
use crate::{budget, recorder, storages};

/// Marks, in a record's name, a scope that ended on another thread than it began on.
pub(crate) const ASYNC_BIT: u32 = 1 << 31;

thread_local! {
    static LOCAL: OnceCell<Local> = const { OnceCell::new() };
}

/// Says, in place of a list's number, that the budget has no room for the list.
const NO_ROOM: u32 = u32::MAX;

/// What a scope that has begun needs to end; small enough to be returned in registers.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Begun {
    pub(crate) start: u64,
    pub(crate) place: u32,
    pub(crate) thread: u32,
}

impl Begun {
    const LOST: Self = Self {
        start: 0,
        place: 0,
        thread: u32::MAX,
    };

    /// Returns the scope if it will be recorded.
    #[inline]
    pub(crate) fn recorded(self) -> Option<Self> {
        (self.thread != Self::LOST.thread).then_some(self)
    }
}

/// Begins a scope on this thread, or counts it as lost.
#[inline(never)]
pub(crate) fn begin(gate: Gate, name: Name, inputs: u32) -> Begun {
    with(|local| local.begin(gate, name, inputs)).unwrap_or(Begun::LOST)
}

/// Ends a scope.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a reference would pin the guard to memory, which costs also when nothing records"
)]
#[inline(never)]
pub(crate) fn end(scope: OpenScope, end: u64) {
    // A thread that is ending has no buffer any more; its open scopes are told of as unfinished.
    let _ = with(|local| local.end(&scope, end));
}

/// Appends the two records of a piece of memory.
#[inline(never)]
pub(crate) fn push_pair(gate: Gate, records: [Record; 2]) {
    // A thread that is ending has no buffer any more: what it gives back then is not told.
    let _ = with(|local| local.push_pair(gate, records));
}

/// Appends a record that is no event: if there is no room for it, nothing is counted.
#[inline(never)]
pub(crate) fn push_note(gate: Gate, record: Record) {
    let _ = with(|local| {
        local.follow(gate);
        local.push_or_leave(record)
    });
}

/// Returns the number of the list that the closure writes.
#[inline(never)]
pub(crate) fn intern_inputs(gate: Gate, inputs: impl FnOnce(&mut InputsEncoder)) -> u32 {
    with(|local| local.intern_inputs(gate, inputs)).unwrap_or(NO_ROOM)
}

/// Returns the buffer of this thread, if it has one.
pub(crate) fn own_buffer() -> Option<Arc<Buffer>> {
    let own = |local: &OnceCell<Local>| local.get().map(|local| Arc::clone(&local.buffer));
    LOCAL.try_with(own).ok().flatten()
}

/// Calls `action` with the buffer of this thread, or returns none if the thread is ending.
#[inline]
fn with<T>(action: impl FnOnce(&Local) -> T) -> Option<T> {
    LOCAL
        .try_with(|local| action(local.get_or_init(Local::new)))
        .ok()
}

/// What the owner of a buffer holds.
pub(crate) struct Local {
    buffer: Arc<Buffer>,
    epoch: Cell<u32>,
    chunk: RefCell<Option<Arc<Chunk>>>,
    inputs: RefCell<KnownInputs>,
}

/// The input lists that this thread has seen, for finding them without a lock.
#[derive(Default)]
struct KnownInputs {
    encoder: InputsEncoder,
    ids: FxHashMap<Box<[u64]>, u32>,
}

impl Local {
    fn new() -> Self {
        Self {
            buffer: recorder::register_thread(),
            epoch: Cell::new(0),
            chunk: RefCell::default(),
            inputs: RefCell::default(),
        }
    }

    #[inline]
    fn begin(&self, gate: Gate, name: Name, inputs: u32) -> Begun {
        self.follow(gate);
        if name.is_refused() || inputs == NO_ROOM {
            self.buffer.count_lost();
            return Begun::LOST;
        }
        let start = ticks();
        let name = name.raw();
        let place = self.buffer.open.push(OpenEntry { start, name });
        let thread = self.buffer.index;
        if gate.wants_storages() && inputs != 0 {
            self.push_storages(start);
        }
        Begun {
            start,
            place,
            thread,
        }
    }

    fn push_pair(&self, gate: Gate, [head, tail]: [Record; 2]) {
        self.follow(gate);
        // A tail without a head would be taken for one: if there is no room for the head, both are left out.
        for record in [head, tail] {
            if !self.push(record) && !self.push_to_new_chunk(record) {
                return;
            }
        }
    }

    /// Writes where the tensors lie of the list of inputs that was looked up last.
    fn push_storages(&self, start: u64) {
        let known = self.inputs.borrow();
        storages::write(start, &known.encoder, |record| self.push_or_leave(record));
    }

    fn push_or_leave(&self, record: Record) -> bool {
        self.push(record) || self.push_to_new_chunk_if_room(record)
    }

    /// Empties the buffer if the gate is of another recording than the last event.
    #[inline]
    fn follow(&self, gate: Gate) {
        if self.epoch.get() != gate.epoch() {
            self.begin_epoch(gate.epoch());
        }
    }

    #[inline]
    fn end(&self, scope: &OpenScope, end: u64) {
        if self.epoch.get() != scope.epoch || self.buffer.index != scope.thread {
            self.end_elsewhere(scope, end);
            return;
        }
        // The record is made anew for the cold call, so that the usual one need not be in memory.
        if !self.push(scope.record(end)) {
            self.push_to_new_chunk(scope.record(end));
        }
        self.buffer.open.pop(scope.place);
    }

    /// Ends a scope of another thread, or drops one of an earlier recording.
    #[cold]
    fn end_elsewhere(&self, scope: &OpenScope, end: u64) {
        if self.buffer.index == scope.thread || Gate::load().epoch() != scope.epoch {
            // Its windows have closed and told of it as unfinished.
            return;
        }
        if self.epoch.get() != scope.epoch {
            self.begin_epoch(scope.epoch);
        }
        let mut record = scope.record(end);
        record.name |= ASYNC_BIT;
        // Lists of inputs are numbered by thread.
        record.inputs = 0;
        if !self.push(record) {
            self.push_to_new_chunk(record);
        }
        recorder::close_on_thread(scope.thread, scope.place);
    }

    #[inline]
    fn push(&self, record: Record) -> bool {
        match self.chunk.borrow().as_ref() {
            // SAFETY: the chunk is of this thread's buffer, and `Local` never leaves its thread.
            Some(chunk) => unsafe { chunk.push(record) },
            None => false,
        }
    }

    #[cold]
    fn push_to_new_chunk(&self, record: Record) -> bool {
        let has_room = self.push_to_new_chunk_if_room(record);
        if !has_room {
            self.buffer.count_lost();
        }
        has_room
    }

    #[cold]
    fn push_to_new_chunk_if_room(&self, record: Record) -> bool {
        let wanted = match self.chunk.borrow().as_ref() {
            Some(chunk) => (chunk.capacity() * GROWTH).min(FULL),
            None => FIRST,
        };
        let unit = size_of::<Record>();
        let capacity = budget::charge(wanted * unit, unit) / unit;
        let chunk = if capacity == 0 {
            None
        } else {
            Chunk::new(capacity)
        };
        let Some(chunk) = chunk.map(Arc::new) else {
            return false;
        };
        // SAFETY: as in `push`.
        unsafe { chunk.push(record) };
        self.buffer.contents().chunks.push(Arc::clone(&chunk));
        *self.chunk.borrow_mut() = Some(chunk);
        true
    }

    #[cold]
    fn begin_epoch(&self, epoch: u32) {
        self.buffer.begin_epoch(epoch);
        *self.chunk.borrow_mut() = None;
        self.inputs.borrow_mut().ids.clear();
        self.epoch.set(epoch);
    }

    fn intern_inputs(&self, gate: Gate, inputs: impl FnOnce(&mut InputsEncoder)) -> u32 {
        self.follow(gate);
        // The closure is the host's: if it comes back here by way of a scope of its own, that scope has no inputs.
        let Ok(mut known) = self.inputs.try_borrow_mut() else {
            return 0;
        };
        known.encoder.clear();
        inputs(&mut known.encoder);
        match known.ids.get(known.encoder.words()) {
            Some(&id) => id,
            None => self.add_inputs(&mut known),
        }
    }

    #[cold]
    fn add_inputs(&self, known: &mut KnownInputs) -> u32 {
        let words = known.encoder.words();
        // Held here and in the shared table.
        let bytes = (2 * size_of_val(words)).max(1);
        if budget::charge(bytes, bytes) == 0 {
            return NO_ROOM;
        }
        let id = self.buffer.contents().inputs.intern(words).to_raw();
        known.ids.insert(words.into(), id);
        id
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.buffer.retire();
    }
}
