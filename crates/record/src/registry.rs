//! The registry of recording threads: the buffer of each, found by its number.
//!
//! A thread is added at its first event (`local`) and removed after it has exited, once no window
//! can want its records any more (`recorder`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffer::Buffer;
use crate::gate::Gate;
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
