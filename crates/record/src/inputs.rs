//! The input lists that one thread has seen, so that the number of a list is found without a lock.
//!
//! The numbers index the table in the thread's buffer, from which `assemble` reads the lists. The
//! storage addresses of the last list are remembered with it, for `storages`.

use std::{array, mem};

use mindprof_model::Encoder;
use rustc_hash::FxHashMap;

use crate::budget;
use crate::buffer::Buffer;
use crate::diffing_writer::DiffingWriter;
use crate::gate::Gate;
use crate::name::Name;
use crate::raw::Record;
use crate::storages::{self, SLOTS};

/// Encodes the inputs of a scope over the previous list of the same operator. Consecutive calls
/// mostly have equal inputs, which this finds out while writing, without a hash. The closures of
/// [`scope_with`](crate::scope_with) and [`open_with`](crate::open_with) write to it.
pub type InputsRewriter<'a> = Encoder<DiffingWriter<'a>>;

/// The input lists that one thread has interned in the current recording.
#[derive(Default)]
pub(crate) struct KnownInputs {
    ids: FxHashMap<Box<[u64]>, u32>,
    /// The last list of each slot of scopes. It is mostly that of the next scope too, which is then
    /// found without hashing.
    recent: Option<Box<[RecentInputs; SLOTS]>>,
    /// The recording that the lists belong to. It differs from the thread's own while a closure
    /// that writes a list starts another recording.
    epoch: u32,
}

/// The list that was interned last, with its number; at first the empty list, which has the number
/// zero.
#[derive(Default)]
struct RecentInputs {
    words: Vec<u64>,
    /// The storage addresses of its tensors.
    storages: Vec<u64>,
    id: u32,
    /// Whether these addresses have been recorded.
    is_written: bool,
}

impl KnownInputs {
    /// Forgets the lists if they belong to another recording.
    #[inline]
    fn follow(&mut self, epoch: u32) {
        if self.epoch != epoch {
            self.begin_epoch(epoch);
        }
    }

    #[cold]
    fn begin_epoch(&mut self, epoch: u32) {
        self.ids.clear();
        self.recent = None;
        self.epoch = epoch;
    }

    /// Interns the list that the closure writes, and returns the inputs of the scope that begins:
    /// the number of the list, flagged if its storage addresses are known or new.
    pub(crate) fn intern(
        &mut self,
        gate: Gate,
        name: Name,
        buffer: &Buffer,
        inputs: impl FnOnce(&mut InputsRewriter<'_>),
    ) -> u32 {
        self.follow(gate.epoch());
        let slots = self.recent.get_or_insert_with(no_inputs);
        let recent = &mut slots[storages::slot(name.raw())];
        // If the closure panics, the half-written list must not keep the number.
        let id = mem::replace(&mut recent.id, Record::NO_ROOM);
        let is_written = mem::take(&mut recent.is_written);
        let words = DiffingWriter::new(&mut recent.words);
        let storages = DiffingWriter::new(&mut recent.storages);
        let mut rewriter = InputsRewriter::new(words, storages);
        inputs(&mut rewriter);
        let (words, storages) = rewriter.into_parts();
        let (is_changed, is_moved) = (words.finish(), storages.finish());
        recent.id = if is_changed || id == Record::NO_ROOM {
            find(&mut self.ids, &recent.words, buffer)
        } else {
            id
        };
        recent.is_written = is_written && !is_moved;
        match recent.id {
            Record::NO_ROOM => Record::NO_ROOM,
            id if !gate.wants_storages() || recent.storages.is_empty() => id,
            id if recent.is_written => id | Record::HAS_STORAGES,
            id => id | Record::NEW_STORAGES,
        }
    }

    /// Records the storage addresses of the list that was interned last. Returns whether there was
    /// room for them.
    pub(crate) fn write_storages(
        &mut self,
        start: u64,
        name: Name,
        push: impl FnMut(Record) -> bool,
    ) -> bool {
        let slot = storages::slot(name.raw());
        let Some(recent) = &mut self.recent else {
            return false;
        };
        let recent = &mut recent[slot];
        recent.is_written = storages::write(start, slot, &recent.storages, push);
        recent.is_written
    }
}

#[cold]
fn no_inputs() -> Box<[RecentInputs; SLOTS]> {
    Box::new(array::from_fn(|_| RecentInputs::default()))
}

#[inline(never)]
fn find(ids: &mut FxHashMap<Box<[u64]>, u32>, words: &[u64], buffer: &Buffer) -> u32 {
    match ids.get(words) {
        Some(&id) => id,
        None if words.is_empty() => 0,
        None => add(ids, words, buffer),
    }
}

#[cold]
fn add(ids: &mut FxHashMap<Box<[u64]>, u32>, words: &[u64], buffer: &Buffer) -> u32 {
    // The list is held here and in the shared table.
    let bytes = (2 * size_of_val(words)).max(1);
    if budget::charge(bytes, bytes) == 0 {
        return Record::NO_ROOM;
    }
    let id = buffer.contents().inputs.intern(words).to_raw();
    ids.insert(words.into(), id);
    id
}
