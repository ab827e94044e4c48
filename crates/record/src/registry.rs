//! The registry of recording threads: the buffer of each, found by its number.
//!
//! A thread is added at its first event (`local`) and removed after it has exited, once no window
//! can want its records any more (`recorder`).

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffer::Buffer;
use crate::gate::{self, Gate};
use crate::open::OpenSlot;
use crate::raw::Record;
use crate::thread_key::ThreadKey;

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    buffers: Vec::new(),
});

pub(crate) struct Registry {
    buffers: Vec<Arc<Buffer>>,
}

/// Locks the registry. Code that also needs the recorder's lock must take that one first.
pub(crate) fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers the calling thread and returns its buffer.
pub(crate) fn register_thread() -> Arc<Buffer> {
    let mut registry = registry();
    let buffer = Arc::new(Buffer::new(ThreadKey::current().to_raw()));
    registry.buffers.push(Arc::clone(&buffer));
    buffer
}

/// Ends a scope of recording `epoch` on a thread other than the one it began on, which may have
/// exited.
pub(crate) fn end_elsewhere(record: Record, epoch: u32, slot: OpenSlot) {
    // The gate is read while the lock is held: a window that closes the gate afterwards waits for
    // the lock and sees this record.
    let registry = registry();
    // Otherwise its windows have closed and reported the scope as unfinished.
    if Gate::load().epoch() == epoch {
        let mut buffers = registry.buffers.iter();
        if let Some(buffer) = buffers.find(|buffer| buffer.index == slot.thread()) {
            buffer.end_elsewhere(epoch, slot.index(), record);
        }
    }
}

/// Notes that a counted operator of another thread has ended.
pub(crate) fn leave_elsewhere(thread: u32) {
    let registry = registry();
    let mut buffers = registry.buffers.iter();
    if let Some(buffer) = buffers.find(|buffer| buffer.index == thread) {
        buffer.left_elsewhere.fetch_add(1, Ordering::Relaxed);
    }
}

/// Gives up the oldest chunk of recording `epoch`, of whichever thread, to make room for newer
/// records. Returns false if there is none, or if every window keeps its first events. It is called
/// once for each chunk that a thread fills, never per event.
pub(crate) fn forget_oldest(epoch: u32) -> bool {
    let before = gate::recycle_before();
    if before == 0 {
        return false;
    }
    // The lock is held to the end: another thread would choose the same chunk.
    let registry = registry();
    let ends = registry.of_epoch(epoch).filter_map(|buffer| {
        let end = buffer.contents().oldest_end(buffer.owner())?;
        Some((end, buffer))
    });
    let oldest = ends.min_by_key(|(end, _)| *end);
    let oldest = oldest.filter(|(end, _)| *end < before);
    oldest.is_some_and(|(_, buffer)| buffer.contents().forget_oldest(buffer.owner()))
}

impl Registry {
    /// Iterates over the buffers that hold records of recording `epoch`.
    pub(crate) fn of_epoch(&self, epoch: u32) -> impl Iterator<Item = &Arc<Buffer>> {
        let buffers = self.buffers.iter();
        buffers.filter(move |buffer| buffer.contents().epoch == epoch)
    }

    /// Removes threads that have exited.
    pub(crate) fn forget_ended(&mut self) {
        self.buffers.retain(|buffer| !buffer.is_retired());
    }

    /// Drops all records. A living thread keeps the chunk that it writes to.
    pub(crate) fn release(&mut self) {
        self.forget_ended();
        for buffer in &self.buffers {
            buffer.contents().release();
        }
    }

    /// Removes all threads but the one with the given buffer, in a forked child.
    pub(crate) fn start_over(&mut self, own: Option<Arc<Buffer>>) {
        self.buffers.clear();
        self.buffers.extend(own);
    }
}
