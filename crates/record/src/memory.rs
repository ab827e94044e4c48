//! Memory that the host takes and gives back, told as it happens.
//!
//! A piece of memory is one record in the thread's buffer, marked by a name that no scope has. Its
//! bytes and the total have 48 bits each, more than a process can address.
//!
//! ```text
//! start   end       name   inputs, stack, sequence
//! time    address   mark   bytes 0-31, bytes 32-47 and total 0-15, total 16-47
//! ```

use mindprof_model::{DeviceKind, MemoryRecord, Nanos, StackId, ThreadId};

use crate::chunk::Record;
use crate::clock::{Scale, ticks};
use crate::gate::Gate;
use crate::local;

/// Tells of a block that was taken (`bytes` above zero) or given back (below), and of the total
/// that is taken after it.
///
/// One relaxed load unless some window wants memory; the total is asked for only then.
#[inline]
pub fn memory(address: u64, bytes: i64, total: impl FnOnce() -> u64) {
    let gate = Gate::load();
    if gate.wants_memory() {
        let record = record(ticks(), address, bytes, total());
        local::push_event(gate, record.to_words());
    }
}

#[inline]
fn record(time: u64, address: u64, bytes: i64, total: u64) -> Record {
    Record {
        start: time,
        end: address,
        name: Record::MEMORY,
        inputs: bytes as u32,
        stack: (bytes >> 32) as u32 & 0xffff | (total as u32) << 16,
        sequence: (total >> 16) as u32,
    }
}

/// A piece of memory as it was recorded, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    time: u64,
    address: u64,
    bytes: i64,
    total: u64,
}

impl Piece {
    /// Takes it from its record.
    pub(crate) fn from_record(record: &Record) -> Self {
        // The cast of the middle gives the high bytes their sign.
        let high = i64::from(record.stack as i16) << 32;
        Self {
            time: record.start,
            address: record.end,
            bytes: high | i64::from(record.inputs),
            total: u64::from(record.stack >> 16) | u64::from(record.sequence) << 16,
        }
    }

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_piece_comes_out_of_its_record_whole(
            time: u64,
            address: u64,
            bytes in -(1_i64 << 47)..1 << 47,
            total in 0_u64..1 << 48,
        ) {
            let piece = Piece { time, address, bytes, total };
            let found = Piece::from_record(&record(time, address, bytes, total));
            prop_assert_eq!(found, piece);
        }
    }
}
