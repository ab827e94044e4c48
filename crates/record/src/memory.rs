//! Allocations and frees of the framework, on the CPU and on devices: one record each in the
//! thread's buffer.

use mindprof_model::{MemoryRecord, Nanos, StackId, ThreadId};

use crate::clock::Scale;
use crate::gate::Gate;
use crate::local;
use crate::raw::{MemoryDevice, RawMemoryEvent};

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
        local::push_memory(gate, address, bytes, total(), MemoryDevice::CPU);
    }
}

/// Records an allocation or a free on a device, as [`memory`] does for the CPU, with the totals
/// after it: the memory in blocks, and all memory that the device's allocator holds.
#[inline]
pub fn device_memory(
    device: MemoryDevice,
    address: u64,
    bytes: i64,
    total_allocated: u64,
    total_reserved: u64,
) {
    let gate = Gate::load();
    if gate.wants_memory() {
        local::push_reserved(gate, device, total_reserved);
        local::push_memory(gate, address, bytes, total_allocated, device);
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
            total_reserved: self.reserved,
            thread,
            stack: StackId::NONE,
            device: self.device.kind(),
            device_index: self.device.index(),
        }
    }
}
