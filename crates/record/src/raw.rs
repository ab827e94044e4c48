//! The layout of a record: every kind of record, and the meaning of every bit of its 32 bytes.
//!
//! Threads append records that hold ticks and numbers of the recorder's tables; `assemble` reads
//! them. A record that is not a scope is marked by a name that no scope has. Memory sizes and
//! totals have 48 bits each, more than a process can address.
//!
//! ```text
//! kind       start   end       name        inputs           stack           sequence
//! scope      start   end       its name    its inputs       its stack       its sequence number
//! memory     time    address   MEMORY or   bytes 0-31       bytes 32-47,    total 16-47
//!                              a device                     total 0-15
//! reserved   time    bytes     RESERVED    the device       0
//! storages   start   address   STORAGES    count and slot   address (low, high)
//!  further   address address   FURTHER_…   0                address (low, high)
//! role       time    address   ROLE        the role         bytes (low, high)
//! forward    start   key       FORWARD     0                0
//! result     time    address   RESULT      its inputs       0
//! external   start   number    EXTERNAL    0                0
//! function   start   number    FUNCTION    0                0
//! hierarchy  start   name      HIERARCHY   0                0
//! arguments  start   number    ARGUMENTS   name or 0        number (low, high)
//! ```

use mindprof_model::{DeviceKind, TensorRole};

/// The largest sequence number that fits into a record: the highest bit marks the number of a
/// forward operator, and all ones mean none.
pub const MAX_SEQUENCE: u32 = Record::NO_SEQUENCE - Record::OF_FORWARD - 1;

/// One record, in ticks and in numbers of the recorder's tables. The fields are named for a scope,
/// the most frequent kind; the table above shows what other kinds keep in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Record {
    /// The start, in ticks.
    pub(crate) start: u64,
    /// The end, in ticks.
    pub(crate) end: u64,
    /// The number of the name (see `name`), with the flag [`Record::ASYNC`].
    pub(crate) name: u32,
    /// The number of the inputs in the thread's table, with the flag [`Record::HAS_STORAGES`].
    pub(crate) inputs: u32,
    /// The number of the stack in the thread's table, with the flag [`Record::CALL`]; zero means
    /// none.
    pub(crate) stack: u32,
    /// The sequence number, with the flag [`Record::OF_FORWARD`]; all ones mean none.
    pub(crate) sequence: u32,
}

/// The documentation promises 32 bytes per event.
const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    /// The names that mark records which are not scopes. The table of names never grows large
    /// enough to give out any of these numbers.
    pub(crate) const MEMORY: u32 = u32::MAX;
    pub(crate) const STORAGES: u32 = u32::MAX - 1;
    pub(crate) const FURTHER_STORAGES: u32 = u32::MAX - 2;
    pub(crate) const ROLE: u32 = u32::MAX - 3;
    pub(crate) const FORWARD: u32 = u32::MAX - 4;
    pub(crate) const RESULT: u32 = u32::MAX - 5;
    pub(crate) const EXTERNAL: u32 = u32::MAX - 6;
    pub(crate) const FUNCTION: u32 = u32::MAX - 7;
    pub(crate) const HIERARCHY: u32 = u32::MAX - 8;
    pub(crate) const RESERVED: u32 = u32::MAX - 9;
    pub(crate) const ARGUMENTS: u32 = u32::MAX - 10;

    /// The first of the names that mark memory of a device, to which the device is added.
    const DEVICE_MEMORY: u32 = u32::MAX - 0x2_0000;
    const LAST_DEVICE_MEMORY: u32 = Self::DEVICE_MEMORY + 0xffff;

    /// Flags the name of a scope that ended on another thread than it began on, or was marked as
    /// asynchronous.
    pub(crate) const ASYNC: u32 = 1 << 31;

    /// The largest allocation and the largest total that fit into a record.
    const MOST_BYTES: i64 = (1 << 47) - 1;
    const MOST_TOTAL_BYTES: u64 = (1 << 48) - 1;

    /// Flags the inputs of a scope whose storage addresses are known.
    pub(crate) const HAS_STORAGES: u32 = 1 << 31;

    /// Flags the inputs of a scope that begins, if its storage addresses differ from those of the
    /// last scope. It never appears in a record.
    pub(crate) const NEW_STORAGES: u32 = 1 << 30;

    /// Replaces the inputs of a scope that begins, if the budget has no room for the list. It never
    /// appears in a record.
    pub(crate) const NO_ROOM: u32 = u32::MAX;

    /// Flags the stack of a call. A tree with that many stacks exceeds every budget.
    pub(crate) const CALL: u32 = 1 << 31;

    /// Stands for "no sequence number".
    pub(crate) const NO_SEQUENCE: u32 = u32::MAX;

    /// Flags the sequence number of a backward node as that of its forward operator. The operator
    /// ran on the same thread unless a forward record says otherwise.
    pub(crate) const OF_FORWARD: u32 = 1 << 31;

    /// Returns a record that is not a scope.
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

    /// Returns the record of an allocation or a free. Amounts that do not fit are clamped.
    #[inline]
    pub(crate) fn memory(
        time: u64,
        address: u64,
        bytes: i64,
        total: u64,
        device: MemoryDevice,
    ) -> Self {
        let bytes = bytes.clamp(-Self::MOST_BYTES - 1, Self::MOST_BYTES);
        let total = total.min(Self::MOST_TOTAL_BYTES);
        Self {
            start: time,
            end: address,
            name: device.record_name(),
            inputs: bytes as u32,
            stack: (bytes >> 32) as u32 & 0xffff | (total as u32) << 16,
            sequence: (total >> 16) as u32,
        }
    }

    /// Returns the record of the memory that a device's allocator holds, for the blocks that follow.
    pub(crate) const fn reserved(time: u64, bytes: u64, device: MemoryDevice) -> Self {
        Self::other(Self::RESERVED, time, bytes, 0, device.0 as u32)
    }

    /// Returns the record for a backward node that began at `start` and whose forward operator ran
    /// on the thread with this key.
    pub(crate) const fn forward(start: u64, thread: u32) -> Self {
        Self::other(Self::FORWARD, start, thread as u64, 0, 0)
    }

    /// Returns the record for a scope that began at `start` and that device work refers to by this
    /// external id.
    pub(crate) const fn external(start: u64, number: u32) -> Self {
        Self::other(Self::EXTERNAL, start, number as u64, 0, 0)
    }

    /// Returns the record for a scope that began at `start` and that an execution trace refers to by
    /// this record function id.
    pub(crate) const fn function(start: u64, number: u32) -> Self {
        Self::other(Self::FUNCTION, start, number as u64, 0, 0)
    }

    /// Returns the record for a scope that began at `start` inside of the calls of modules with this
    /// name.
    pub(crate) const fn hierarchy(start: u64, name: u32) -> Self {
        Self::other(Self::HIERARCHY, start, name as u64, 0, 0)
    }

    /// Returns a record of the arguments of a scope that began at `start`: two of the numbers in
    /// their text. The first such record of the scope has the name of the text, the others have
    /// zero.
    pub(crate) const fn arguments(start: u64, name: u32, numbers: [u64; 2]) -> Self {
        Self::other(Self::ARGUMENTS, start, numbers[0], numbers[1], name)
    }

    /// Returns the third word of a record that is not a scope.
    pub(crate) const fn third(&self) -> u64 {
        self.stack as u64 | (self.sequence as u64) << 32
    }

    /// Returns the number of the scope's inputs.
    #[inline]
    pub(crate) const fn inputs_number(&self) -> u32 {
        self.inputs & !Self::HAS_STORAGES
    }

    /// Returns whether the storage addresses of the scope's inputs are known.
    #[inline]
    pub(crate) const fn has_storages(&self) -> bool {
        self.inputs & Self::HAS_STORAGES != 0
    }

    /// Returns whether the record is a scope.
    #[inline]
    pub(crate) const fn is_scope(&self) -> bool {
        self.name < Self::DEVICE_MEMORY
    }

    /// Returns whether the record is an allocation or a free, on the CPU or on a device.
    #[inline]
    pub(crate) const fn is_memory(&self) -> bool {
        self.name == Self::MEMORY
            || (self.name >= Self::DEVICE_MEMORY && self.name <= Self::LAST_DEVICE_MEMORY)
    }

    /// Returns the time at which the record was made, as far as it tells: the end of a scope, or the
    /// time or the scope's start of another kind.
    pub(crate) const fn time(&self) -> Option<u64> {
        if self.is_scope() {
            Some(self.end)
        } else if self.name == Self::FURTHER_STORAGES {
            None
        } else {
            Some(self.start)
        }
    }

    /// Returns the sequence number of the scope.
    #[inline]
    pub(crate) fn sequence_number(&self) -> Option<u32> {
        (self.sequence != Self::NO_SEQUENCE).then_some(self.sequence & !Self::OF_FORWARD)
    }

    /// Returns whether the scope is a backward node that knows its forward operator.
    #[inline]
    pub(crate) const fn has_forward(&self) -> bool {
        self.sequence != Self::NO_SEQUENCE && self.sequence & Self::OF_FORWARD != 0
    }
}

/// A call stack of one thread, as a number in that thread's tree of stacks. It is only valid on
/// that thread and in the recording that it was made in; [`Stack::push`] extends it by a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack(u32);

impl Stack {
    /// The empty stack.
    pub const NONE: Self = Self(0);

    /// Stands for a stack that the budget has no room for. A scope with this stack is counted as
    /// lost.
    pub(crate) const NO_ROOM: Self = Self(Record::CALL - 1);

    /// Returns the stack, flagged as that of a call, or `None` if the budget had no room for it.
    pub(crate) fn of_call(self) -> Option<Self> {
        (self != Self::NO_ROOM).then_some(Self(self.0 | Record::CALL))
    }

    /// Returns the number of the last stack of a tree that holds `len` stacks.
    pub(crate) const fn from_len(len: usize) -> Self {
        Self(len as u32)
    }

    /// Returns the stack that a record refers to.
    pub(crate) const fn from_record(stack: u32) -> Self {
        Self(stack & !Record::CALL)
    }

    /// Returns the number that a record holds.
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }
}

/// The device that a block of memory lies on, as two bytes: the number of its kind and its index.
///
/// Frameworks pass it to [`crate::device_memory`]. Records keep it in place of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryDevice(u16);

impl MemoryDevice {
    /// The CPU.
    pub const CPU: Self = Self(0);

    /// Returns the device with this kind and index.
    pub const fn new(kind: DeviceKind, index: u8) -> Self {
        Self(kind.number() as u16 | (index as u16) << 8)
    }

    /// Returns the kind of the device.
    pub fn kind(self) -> DeviceKind {
        DeviceKind::from_number(u64::from(self.0 & 0xff)).unwrap_or_default()
    }

    /// Returns the index among the devices of the kind, or -1 for the CPU.
    pub fn index(self) -> i16 {
        if self.is_cpu() {
            -1
        } else {
            i16::from((self.0 >> 8) as u8)
        }
    }

    const fn is_cpu(self) -> bool {
        self.0 as u8 == 0
    }

    const fn record_name(self) -> u32 {
        if self.is_cpu() {
            Record::MEMORY
        } else {
            Record::DEVICE_MEMORY + self.0 as u32
        }
    }

    /// Returns the device of a record of memory.
    const fn of_record(record: &Record) -> Self {
        if record.name == Record::MEMORY {
            Self::CPU
        } else {
            Self((record.name - Record::DEVICE_MEMORY) as u16)
        }
    }

    /// Returns the device of a record of reserved memory.
    pub(crate) const fn of_reserved(record: &Record) -> Self {
        Self(record.inputs as u16)
    }
}

/// An allocation or a free, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawMemoryEvent {
    pub(crate) time: u64,
    pub(crate) address: u64,
    pub(crate) bytes: i64,
    pub(crate) total: u64,
    pub(crate) device: MemoryDevice,
    /// The memory that the device's allocator holds; zero if it is not known.
    pub(crate) reserved: u64,
}

impl RawMemoryEvent {
    /// Decodes a record, except for what the device's allocator holds.
    pub(crate) fn from_record(record: &Record) -> Self {
        // The cast to `i16` extends the sign.
        let high = i64::from(record.stack as i16) << 32;
        Self {
            time: record.start,
            address: record.end,
            bytes: high | i64::from(record.inputs),
            total: u64::from(record.stack >> 16) | u64::from(record.sequence) << 16,
            device: MemoryDevice::of_record(record),
            reserved: 0,
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
    /// Decodes a record.
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
            kind in 0..DeviceKind::ALL.len(),
            index: u8,
        ) {
            let kind = DeviceKind::ALL[kind];
            let device = if kind == DeviceKind::Cpu {
                MemoryDevice::CPU
            } else {
                MemoryDevice::new(kind, index)
            };
            let piece = RawMemoryEvent { time, address, bytes, total, device, reserved: 0 };
            let record = Record::memory(time, address, bytes, total, device);
            prop_assert!(record.is_memory() && !record.is_scope());
            prop_assert_eq!(RawMemoryEvent::from_record(&record), piece);
            prop_assert_eq!(piece.device.kind(), kind);
        }
    }

    #[test]
    fn amounts_beyond_the_room_of_a_record_are_the_largest() {
        let amounts = |bytes, total| {
            let found =
                RawMemoryEvent::from_record(&Record::memory(1, 2, bytes, total, MemoryDevice::CPU));
            (found.bytes, found.total)
        };
        let most = (1 << 47) - 1;
        assert_eq!(amounts(1 << 62, 1 << 62), (most, (1 << 48) - 1));
        assert_eq!(amounts(i64::MIN, u64::MAX), (-most - 1, (1 << 48) - 1));
    }
}
