//! The roles of tensors in training (parameter, gradient, optimizer state): one record each in the
//! thread's buffer.

use mindprof_model::{Nanos, RoleRecord, TensorRole, ThreadId};

use crate::clock::{Scale, ticks};
use crate::gate::Gate;
use crate::local;
use crate::raw::{RawRole, Record};

/// Returns whether some window wants the storage addresses of tensors. Costs one relaxed load.
#[inline]
pub fn wants_storages() -> bool {
    Gate::load().wants_storages()
}

/// Returns whether some window wants the tensors that modules and optimizers hold: one that records
/// memory and all calls. Costs one relaxed load.
#[inline]
pub fn wants_held_tensors() -> bool {
    let gate = Gate::load();
    gate.wants_memory() && gate.wants_all_calls()
}

/// Records the role of a tensor whose storage of `bytes` bytes lies at `address`.
#[inline]
pub fn tensor_role(role: TensorRole, address: u64, bytes: u64) {
    let gate = Gate::load();
    if gate.wants_storages() {
        let record = Record::other(Record::ROLE, ticks(), address, bytes, role as u32);
        local::push_side_record(gate, record);
    }
}

impl RawRole {
    /// Converts it to the model's record.
    pub(crate) fn assemble(self, thread: ThreadId, scale: &Scale) -> RoleRecord {
        RoleRecord {
            time: Nanos(scale.nanoseconds(self.time)),
            address: self.address,
            bytes: self.bytes,
            thread,
            role: self.role,
        }
    }
}
