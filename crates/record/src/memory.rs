//! The host's allocations and frees: one record each in the thread's buffer.

use mindprof_model::{DeviceKind, MemoryRecord, Nanos, StackId, ThreadId};

use crate::clock::Scale;
use crate::gate::Gate;
use crate::local;
use crate::raw::RawMemoryEvent;

/// Tells of a block that was taken (`bytes` above zero) or given back (below), and of the total
/// that is taken after it.
///
/// The first block that a [`crate::Scope`] takes itself counts as taken when the scope begins:
/// operators tell of their results when those are filled, and a clock is half the price of a scope.
///
/// More than 2^47 bytes, which no machine has, count as that many; of a total, 2^48.
///
/// One relaxed load unless some window wants memory; the total is asked for only then.
#[inline]
pub fn memory(address: u64, bytes: i64, total: impl FnOnce() -> u64) {
    let gate = Gate::load();
    if gate.wants_memory() {
        local::push_memory(gate, address, bytes, total());
    }
}

impl RawMemoryEvent {
    /// Makes the model's record of it.
    pub(crate) fn assemble(self, thread: ThreadId, scale: &Scale) -> MemoryRecord {
        MemoryRecord {
            time: Nanos(scale.nanoseconds(self.time)),
            address: self.address,
            bytes: self.bytes,
            total_allocated: self.total,
            total_reserved: 0,
            thread,
            stack: StackId::NONE,
            device: DeviceKind::Cpu,
            device_index: -1,
        }
    }
}
