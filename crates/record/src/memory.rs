//! Allocations and frees of the framework: one record each in the thread's buffer.

use mindprof_model::{DeviceKind, MemoryRecord, Nanos, StackId, ThreadId};

use crate::clock::Scale;
use crate::gate::Gate;
use crate::local;
use crate::raw::RawMemoryEvent;

/// Records an allocation (`bytes` above zero) or a free (below zero), with the total allocated
/// after it.
///
/// The first block allocated directly in a [`crate::Scope`] gets the start time of the scope.
/// Operators report their results once those are filled, so the start is closer to the truth, and
/// it saves a clock read, which is half the cost of a scope.
///
/// Sizes are clamped to 2^47 bytes and totals to 2^48, more than any machine has.
///
/// Costs one relaxed load unless some window wants memory; `total` is called only then.
#[inline]
pub fn memory(address: u64, bytes: i64, total: impl FnOnce() -> u64) {
    let gate = Gate::load();
    if gate.wants_memory() {
        local::push_memory(gate, address, bytes, total());
    }
}

impl RawMemoryEvent {
    /// Converts it to the model's record.
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
