//! Memory that the host takes and gives back, told as it happens.
//!
//! A piece of memory needs more room than a scope: it is two records, a head and a tail, one after
//! the other in the thread's buffer. Both are marked by a name that no scope has.

use mindprof_model::{DeviceKind, MemoryRecord, Nanos, StackId, ThreadId};

use crate::chunk::Record;
use crate::clock::{Scale, ticks};
use crate::gate::Gate;
use crate::local;

/// Marks the two records of a piece of memory. The table of names gives out neither number.
const HEAD: u32 = 0;
const TAIL: u32 = u32::MAX;

/// Tells of a block that was taken (`bytes` above zero) or given back (below), and of the total
/// that is taken after it.
///
/// One relaxed load unless some window wants memory; the total is asked for only then.
#[inline]
pub fn memory(address: u64, bytes: i64, total: impl FnOnce() -> u64) {
    let gate = Gate::load();
    if gate.wants_memory() {
        local::push_pair(gate, records(ticks(), address, bytes, total()));
    }
}

fn records(time: u64, address: u64, bytes: i64, total: u64) -> [Record; 2] {
    let record = |start, end, name| Record {
        start,
        end,
        name,
        inputs: 0,
        stack: 0,
        sequence: u32::MAX,
    };
    [
        record(time, address, HEAD),
        record(bytes as u64, total, TAIL),
    ]
}

/// A piece of memory as it was recorded, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) time: u64,
    address: u64,
    bytes: i64,
    total: u64,
}

impl Piece {
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

/// Puts heads and tails together as the records of a thread come by.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    head: Option<(u64, u64)>,
    whole: Vec<Piece>,
}

impl Pieces {
    /// Takes a record if it is of a piece of memory, and returns whether it is.
    ///
    /// A head whose tail there was no room for is left out; it is counted as lost.
    pub(crate) fn takes(&mut self, record: &Record) -> bool {
        match record.name {
            HEAD => self.head = Some((record.start, record.end)),
            TAIL => {
                let whole = self.head.take().map(|(time, address)| Piece {
                    time,
                    address,
                    bytes: record.start as i64,
                    total: record.end,
                });
                self.whole.extend(whole);
            }
            _ => return false,
        }
        true
    }

    /// Returns the pieces that are whole.
    pub(crate) fn finish(self) -> Vec<Piece> {
        self.whole
    }
}
