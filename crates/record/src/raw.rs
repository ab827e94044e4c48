//! The 32 bytes of a record: every kind of record there is, and every bit with a meaning.
//!
//! Threads append records in ticks and in numbers of the recorder's tables; `assemble` reads them.
//! What is no scope is marked by a name that no scope has. Bytes and totals of memory have 48 bits
//! each, more than a process can address.
//!
//! ```text
//! kind       start   end       name        inputs           stack           sequence
//! scope      start   end       its name    its inputs       its stack       its sequence number
//! memory     time    address   MEMORY      bytes 0-31       bytes 32-47,    total 16-47
//!                                                           total 0-15
//! storages   start   address   STORAGES    count and slot   address (low, high)
//!  further   address address   FURTHER_…   0                address (low, high)
//! role       time    address   ROLE        the role         bytes (low, high)
//! forward    start   key       FORWARD     0                0
//! result     time    address   RESULT      its inputs       0
//! external   start   number    EXTERNAL    0                0
//! ```

use mindprof_model::TensorRole;

/// The largest sequence number that a record has room for: the highest bit says whose it is, and
/// all ones are none.
pub const MAX_SEQUENCE: u32 = Record::NO_SEQUENCE - Record::OF_FORWARD - 1;

/// One record, in ticks and in ids of the recorder's tables. The fields are named for a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Record {
    /// When it began.
    pub(crate) start: u64,
    /// When it ended.
    pub(crate) end: u64,
    /// The name, see `name`, with [`Record::ASYNC`].
    pub(crate) name: u32,
    /// The inputs, in the thread's table, with [`Record::HAS_STORAGES`].
    pub(crate) inputs: u32,
    /// The stack, in the thread's table, with [`Record::CALL`]; zero is none.
    pub(crate) stack: u32,
    /// The sequence number, with [`Record::OF_FORWARD`]; all ones is none.
    pub(crate) sequence: u32,
}

/// 32 bytes per event is a promise.
const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    /// Mark, in place of a name, records that are no scopes. The table of names is far too small
    /// to give out any of these numbers.
    pub(crate) const MEMORY: u32 = u32::MAX;
    pub(crate) const STORAGES: u32 = u32::MAX - 1;
    pub(crate) const FURTHER_STORAGES: u32 = u32::MAX - 2;
    pub(crate) const ROLE: u32 = u32::MAX - 3;
    pub(crate) const FORWARD: u32 = u32::MAX - 4;
    pub(crate) const RESULT: u32 = u32::MAX - 5;
    pub(crate) const EXTERNAL: u32 = u32::MAX - 6;

    /// Marks, in the name of a scope, that it ended on another thread than it began on,
    /// or was said to be able to.
    pub(crate) const ASYNC: u32 = 1 << 31;

    /// The largest allocation, and the largest total, that a record has room for.
    const MOST_BYTES: i64 = (1 << 47) - 1;
    const MOST_TOTAL_BYTES: u64 = (1 << 48) - 1;

    /// Marks, in the inputs of a scope, that it is known where its tensors lie.
    pub(crate) const HAS_STORAGES: u32 = 1 << 31;

    /// Marks, in the inputs of a scope that begins, that its tensors lie elsewhere than those of
    /// the last scope. Never in a record.
    pub(crate) const NEW_STORAGES: u32 = 1 << 30;

    /// Stands, in place of the inputs of a scope that begins, for a list that the budget has no
    /// room for. Never in a record.
    pub(crate) const NO_ROOM: u32 = u32::MAX;

    /// Marks, in the stack of a scope, a call. A tree of so many stacks is beyond every budget.
    pub(crate) const CALL: u32 = 1 << 31;

    /// Stands for "no sequence number".
    pub(crate) const NO_SEQUENCE: u32 = u32::MAX;

    /// Marks, in the sequence number of a backward node, that it is the one of the node's forward
    /// operator. That ran on the same thread, unless a record of its own says otherwise.
    pub(crate) const OF_FORWARD: u32 = 1 << 31;

    /// Makes a record that is no scope.
    pub(crate) const fn other(kind: u32, start: u64, end: u64, third: u64, fourth: u32) -> Self {
        Self {
            start,
            end,
            name: kind,
            inputs: fourth,
            stack: third as u32,
            sequence: (third >> 32) as u32,
        }
    }

    /// Makes the record of an allocation or a free. Amounts that no machine has are kept as the
    /// largest that there is room for.
    #[inline]
    pub(crate) fn memory(time: u64, address: u64, bytes: i64, total: u64) -> Self {
        let bytes = bytes.clamp(-Self::MOST_BYTES - 1, Self::MOST_BYTES);
        let total = total.min(Self::MOST_TOTAL_BYTES);
        Self {
            start: time,
            end: address,
            name: Self::MEMORY,
            inputs: bytes as u32,
            stack: (bytes >> 32) as u32 & 0xffff | (total as u32) << 16,
            sequence: (total >> 16) as u32,
        }
    }

    /// Makes the record of a backward node that began at `start` and whose forward operator ran on
    /// the thread with this key.
    pub(crate) const fn forward(start: u64, thread: u32) -> Self {
        Self::other(Self::FORWARD, start, thread as u64, 0, 0)
    }

    /// Makes the record of a scope that began at `start` and by whose number a device's work names
    /// it.
    pub(crate) const fn external(start: u64, number: u32) -> Self {
        Self::other(Self::EXTERNAL, start, number as u64, 0, 0)
    }

    /// Returns the third word of a record that is no scope.
    pub(crate) const fn third(&self) -> u64 {
        self.stack as u64 | (self.sequence as u64) << 32
    }

    /// Returns the number of the scope's inputs.
    #[inline]
    pub(crate) const fn inputs_number(&self) -> u32 {
        self.inputs & !Self::HAS_STORAGES
    }

    /// Returns whether it is known where the scope's tensors lie.
    #[inline]
    pub(crate) const fn has_storages(&self) -> bool {
        self.inputs & Self::HAS_STORAGES != 0
    }

    /// Returns whether it is a scope.
    #[inline]
    pub(crate) const fn is_scope(&self) -> bool {
        self.name < Self::EXTERNAL
    }

    /// Returns the sequence number of the scope.
    #[inline]
    pub(crate) fn sequence_number(&self) -> Option<u32> {
        (self.sequence != Self::NO_SEQUENCE).then_some(self.sequence & !Self::OF_FORWARD)
    }

    /// Returns whether the scope is of a backward node that knows its forward operator.
    #[inline]
    pub(crate) const fn has_forward(&self) -> bool {
        self.sequence != Self::NO_SEQUENCE && self.sequence & Self::OF_FORWARD != 0
    }
}

/// A stack of the calling thread, in the present recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack(u32);

impl Stack {
    /// No stack.
    pub const NONE: Self = Self(0);

    /// Stands for a stack that the budget has no room for. A scope that has it is counted as lost.
    pub(crate) const NO_ROOM: Self = Self(Record::CALL - 1);

    /// Returns the stack as that of a call. One that there is no room for keeps its number, which
    /// is how its loss is noticed.
    pub(crate) fn of_call(self) -> Self {
        if self == Self::NO_ROOM {
            return self;
        }
        Self(self.0 | Record::CALL)
    }

    /// Returns the number of the stack that was added last to a tree that now holds `len`.
    pub(crate) const fn from_len(len: usize) -> Self {
        Self(len as u32)
    }

    /// Returns the stack that a record names.
    pub(crate) const fn from_record(stack: u32) -> Self {
        Self(stack & !Record::CALL)
    }

    /// Returns the number that a record holds.
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }
}

/// An allocation or a free, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawMemoryEvent {
    pub(crate) time: u64,
    pub(crate) address: u64,
    pub(crate) bytes: i64,
    pub(crate) total: u64,
}

impl RawMemoryEvent {
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
}

/// The role of a tensor, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRole {
    pub(crate) time: u64,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) role: TensorRole,
}

impl RawRole {
    /// Takes it from its record.
    pub(crate) fn from_record(record: &Record) -> Option<Self> {
        let role = TensorRole::ALL.get(record.inputs as usize)?;
        Some(Self {
            time: record.start,
            address: record.end,
            bytes: record.third(),
            role: *role,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn memory_comes_out_of_its_record_whole(
            time: u64,
            address: u64,
            bytes in -(1_i64 << 47)..1 << 47,
            total in 0_u64..1 << 48,
        ) {
            let piece = RawMemoryEvent { time, address, bytes, total };
            let found = RawMemoryEvent::from_record(&Record::memory(time, address, bytes, total));
            prop_assert_eq!(found, piece);
        }
    }

    #[test]
    fn amounts_beyond_the_room_of_a_record_are_the_largest() {
        let amounts = |bytes, total| {
            let found = RawMemoryEvent::from_record(&Record::memory(1, 2, bytes, total));
            (found.bytes, found.total)
        };
        let most = (1 << 47) - 1;
        assert_eq!(amounts(1 << 62, 1 << 62), (most, (1 << 48) - 1));
        assert_eq!(amounts(i64::MIN, u64::MAX), (-most - 1, (1 << 48) - 1));
    }
}
