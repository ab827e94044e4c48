//! The threads that take part: each one's buffer, found by its number.
//!
//! A thread is added at its first event (`local`) and taken out after it has ended, when no window
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

/// Locks the registry. Whoever needs the recorder too locks that first.
pub(crate) fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the calling thread to those that take part.
pub(crate) fn register_thread() -> Arc<Buffer> {
    let mut registry = registry();
    let buffer = Arc::new(Buffer::new(ThreadKey::current().to_raw()));
    registry.buffers.push(Arc::clone(&buffer));
    buffer
}

/// Ends a scope of recording `epoch` on another thread than it began on, which may have ended.
pub(crate) fn end_elsewhere(record: Record, epoch: u32, slot: OpenSlot) {
    // The gate is looked at under the lock: a window that closes it then waits for this record.
    let registry = registry();
    // Else its windows have closed and told of it as unfinished.
    if Gate::load().epoch() == epoch {
        let mut buffers = registry.buffers.iter();
        if let Some(buffer) = buffers.find(|buffer| buffer.index == slot.thread()) {
            buffer.end_elsewhere(epoch, slot.index(), record);
        }
    }
}

impl Registry {
    /// Walks the buffers that have something of recording `epoch`.
    pub(crate) fn of_epoch(&self, epoch: u32) -> impl Iterator<Item = &Arc<Buffer>> {
        let buffers = self.buffers.iter();
        buffers.filter(move |buffer| buffer.contents().epoch == epoch)
    }

    /// Forgets the threads that have ended.
    pub(crate) fn forget_ended(&mut self) {
        self.buffers.retain(|buffer| !buffer.is_retired());
    }

    /// Lets go of all records. A living thread keeps the chunk that it writes.
    pub(crate) fn release(&mut self) {
        self.forget_ended();
        for buffer in &self.buffers {
            buffer.contents().release();
        }
    }

    /// Forgets all threads but the one whose buffer is given: what a forked child begins with.
    pub(crate) fn start_over(&mut self, own: Option<Arc<Buffer>>) {
        self.buffers.clear();
        self.buffers.extend(own);
    }
}
