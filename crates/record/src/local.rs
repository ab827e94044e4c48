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
use crate::chunk::{Chunk, FIRST, FULL, Record};
use crate::clock::ticks;
use crate::gate::Gate;
use crate::name::Name;
use crate::open::OpenEntry;
use crate::scope::OpenScope;
use crate::{budget, recorder};

/// Marks, in a record's name, a scope that ended on another thread than it began on.
pub(crate) const ASYNC_BIT: u32 = 1 << 31;

thread_local! {
    static LOCAL: OnceCell<Local> = const { OnceCell::new() };
}

/// Calls `action` with the buffer of this thread, or returns none if the thread is ending.
#[inline]
pub(crate) fn with<T>(action: impl FnOnce(&Local) -> T) -> Option<T> {
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

    /// Begins a scope, or counts it as lost and returns none.
    #[inline]
    pub(crate) fn begin(
        &self,
        gate: Gate,
        name: Name,
        inputs: impl FnOnce(&mut InputsEncoder),
    ) -> Option<OpenScope> {
        if self.epoch.get() != gate.epoch() {
            self.begin_epoch(gate.epoch());
        }
        let inputs = if gate.wants_inputs() {
            self.intern_inputs(inputs)
        } else {
            Some(0)
        };
        let (Some(name), Some(inputs)) = (name.number(), inputs) else {
            self.buffer.count_lost();
            return None;
        };
        let start = ticks();
        let place = self.buffer.open.push(OpenEntry { start, name });
        let (epoch, thread) = (gate.epoch(), self.buffer.index);
        Some(OpenScope {
            start,
            name,
            inputs,
            sequence: u32::MAX,
            epoch,
            place,
            thread,
        })
    }

    /// Ends a scope that began in this recording.
    #[inline]
    pub(crate) fn end(&self, scope: &OpenScope, end: u64) {
        if self.epoch.get() != scope.epoch || self.buffer.index != scope.thread {
            self.end_elsewhere(scope, end);
            return;
        }
        self.append(scope.record(end));
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
        self.append(record);
        recorder::close_on_thread(scope.thread, scope.place);
    }

    #[inline]
    fn append(&self, record: Record) {
        // SAFETY: the chunk is of this thread's buffer, and `Local` never leaves its thread.
        let pushed = |chunk: &Arc<Chunk>| unsafe { chunk.push(record) };
        if !self.chunk.borrow().as_ref().is_some_and(pushed) {
            self.append_to_new_chunk(record);
        }
    }

    #[cold]
    fn append_to_new_chunk(&self, record: Record) {
        let wanted = if self.chunk.borrow().is_some() {
            FULL
        } else {
            FIRST
        };
        let unit = size_of::<Record>();
        let capacity = budget::charge(wanted * unit, unit) / unit;
        let chunk = if capacity == 0 {
            None
        } else {
            Chunk::new(capacity)
        };
        let Some(chunk) = chunk.map(Arc::new) else {
            self.buffer.count_lost();
            return;
        };
        // SAFETY: as in `append`.
        unsafe { chunk.push(record) };
        self.buffer.contents().chunks.push(Arc::clone(&chunk));
        *self.chunk.borrow_mut() = Some(chunk);
    }

    #[cold]
    fn begin_epoch(&self, epoch: u32) {
        self.buffer.begin_epoch(epoch);
        *self.chunk.borrow_mut() = None;
        self.inputs.borrow_mut().ids.clear();
        self.epoch.set(epoch);
    }

    fn intern_inputs(&self, inputs: impl FnOnce(&mut InputsEncoder)) -> Option<u32> {
        // The closure is the host's: if it comes back here by way of a scope of its own, that scope has no inputs.
        let Ok(mut known) = self.inputs.try_borrow_mut() else {
            return Some(0);
        };
        known.encoder.clear();
        inputs(&mut known.encoder);
        match known.ids.get(known.encoder.words()) {
            Some(&id) => Some(id),
            None => self.add_inputs(&mut known),
        }
    }

    #[cold]
    fn add_inputs(&self, known: &mut KnownInputs) -> Option<u32> {
        let words = known.encoder.words();
        // Held here and in the shared table.
        let bytes = (2 * size_of_val(words)).max(1);
        if budget::charge(bytes, bytes) == 0 {
            return None;
        }
        let id = self.buffer.contents().inputs.intern(words).to_raw();
        known.ids.insert(words.into(), id);
        Some(id)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.buffer.retire();
    }
}
