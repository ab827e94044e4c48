//! Memory that the host takes and gives back, told as it happens.
//!
//! A piece of memory needs more room than a scope: it is two records, a head and a tail, one after the other in the thread's
//! buffer. Both are marked by a name that no scope has.

use mindprof_model::{DeviceKind, MemoryRecord, Nanos, StackId, ThreadId};

use crate::chunk::Record;
use crate::clock::{Scale, ticks};
use crate::gate::Gate;
use crate::local;

/// Marks the two records of a piece of memory. The table of names gives out neither number.
const HEAD: u32 = 0;
const TAIL: u32 = u32::MAX;

/// Tells of a block that was taken (`bytes` above zero) or given back (below), and of the total that is taken after it.
///
/// One relaxed load unless some window wants memory.
#[inline]
pub fn memory(address: u64, bytes: i64, total: u64) {
    let gate = Gate::load();
    if gate.wants_memory() {
        local::push_pair(gate, records(ticks(), address, bytes, total));
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

/// What a thread's records are, told apart.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) scopes: Vec<Record>,
    /// Heads and tails.
    pub(crate) memory: Vec<(Record, Record)>,
}

impl Sorted {
    /// Tells scopes from memory. A head whose tail there was no room for is left out; it is counted as lost.
    pub(crate) fn new(records: impl Iterator<Item = Record>, scopes: usize) -> Self {
        let mut sorted = Self {
            scopes: Vec::with_capacity(scopes),
            memory: Vec::new(),
        };
        let mut head: Option<Record> = None;
        for record in records {
            match (record.name, head.take()) {
                (HEAD, _) => head = Some(record),
                (TAIL, Some(head)) => sorted.memory.push((head, record)),
                (TAIL, None) => {}
                _ => sorted.scopes.push(record),
            }
        }
        sorted
    }
}

/// Makes the model's record of a head and a tail.
pub(crate) fn assemble(
    (head, tail): &(Record, Record),
    thread: ThreadId,
    scale: &Scale,
) -> MemoryRecord {
    MemoryRecord {
        time: Nanos(scale.nanoseconds(head.start)),
        address: head.end,
        bytes: tail.start as i64,
        total_allocated: tail.end,
        total_reserved: 0,
        thread,
        stack: StackId::NONE,
        device: DeviceKind::Cpu,
        device_index: -1,
    }
}
