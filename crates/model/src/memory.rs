//! Memory records: allocations and frees.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::{DeviceKind, Nanos, SplitU64Column, StackId, ThreadId};

/// One allocation or free of a block of memory, with the allocator's totals after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRecord {
    /// The time, since the profile's reference time.
    pub time: Nanos,
    /// The address of the block.
    pub address: u64,
    /// The size of the block; negative for a free.
    pub bytes: i64,
    /// The bytes that the device's allocator had allocated after it.
    pub total_allocated: u64,
    /// The bytes that the device's allocator had reserved after it.
    pub total_reserved: u64,
    /// The thread that allocated or freed.
    pub thread: ThreadId,
    /// The call stack.
    pub stack: StackId,
    /// The kind of device that the block lies on.
    pub device: DeviceKind,
    /// The index of the device among those of its kind; -1 if there is only one.
    pub device_index: i16,
}

impl MemoryRecord {
    /// Returns whether the record is a point of the allocator's curve and of no block of its own.
    ///
    /// Files of Ascend profilers state totals without blocks. Such a record has no address, and its
    /// bytes are the change of the total, which may belong to any number of blocks.
    pub fn is_total(&self) -> bool {
        self.address == 0 && self.device == DeviceKind::PrivateUse1
    }
}

/// The memory records of a profile, at 12 bytes each.
///
/// A training program allocates the same blocks step after step, so only the time and the total
/// differ from record to record; everything else is held once for all records that share it.
///
/// ```text
/// record    0      1      2      3      4           block   address   bytes   ...
/// time      17     21     90     94     163         0       0x7f40      64
/// total     64      0     64      0      64         1       0x7f40     -64
/// block     0      1      0      1       0
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryRecords {
    times: SplitU64Column,
    totals: SplitU64Column,
    blocks: Vec<u32>,
    table: Vec<Block>,
    /// Finds the number of a block; empty once the records are settled.
    known: HashTable<u32>,
    is_sorted: bool,
}

/// The fields that records share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    address: u64,
    bytes: i64,
    total_reserved: u64,
    thread: ThreadId,
    stack: StackId,
    device: DeviceKind,
    device_index: i16,
}

impl Block {
    /// Hashes address and size, which identify nearly every block.
    fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_u64(self.address);
        hasher.write_i64(self.bytes);
        hasher.finish()
    }
}

impl MemoryRecords {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the record at `index`.
    ///
    /// # Panics
    /// Panics if there are fewer records.
    pub fn at(&self, index: usize) -> MemoryRecord {
        let block = &self.table[self.blocks[index] as usize];
        block.record(self.time(index), self.totals.at(index))
    }

    /// Returns the time of the record at `index`.
    ///
    /// # Panics
    /// Panics if there are fewer records.
    pub fn time(&self, index: usize) -> Nanos {
        Nanos(self.times.at(index))
    }

    /// Iterates over the records in time order.
    pub fn iter(&self) -> MemoryRecordsIter<'_> {
        MemoryRecordsIter {
            records: self,
            next: 0,
        }
    }

    /// Iterates over the distinct records, ignoring times and totals.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = MemoryRecord> {
        let blocks = self.table.iter();
        blocks.map(|block| block.record(Nanos::ZERO, 0))
    }

    /// Shifts all records to later times.
    pub(crate) fn shift(&mut self, later: Nanos) {
        let times = self.times.iter().map(|time| time.saturating_add(later.0));
        let mut shifted = SplitU64Column::default();
        shifted.reserve(self.times.len());
        times.for_each(|time| shifted.push(time));
        self.times = shifted;
    }

    /// Replaces the threads of the records.
    pub(crate) fn map_threads(&mut self, map: impl Fn(ThreadId) -> ThreadId) {
        for block in &mut self.table {
            block.thread = map(block.thread);
        }
        // Blocks that differed only in their threads may be equal now. They stay apart, which only
        // costs a row.
    }

    /// Reserves room for so many more records.
    pub(crate) fn reserve(&mut self, records: usize) {
        self.times.reserve(records);
        self.totals.reserve(records);
        self.blocks.reserve(records);
    }

    /// Adds a record, in any order.
    pub(crate) fn push(&mut self, record: &MemoryRecord) {
        let block = Block {
            address: record.address,
            bytes: record.bytes,
            total_reserved: record.total_reserved,
            thread: record.thread,
            stack: record.stack,
            device: record.device,
            device_index: record.device_index,
        };
        let number = self.number(block);
        self.is_sorted = match self.len() {
            0 => true,
            len => self.is_sorted && self.time(len - 1) <= record.time,
        };
        self.blocks.push(number);
        self.times.push(record.time.0);
        self.totals.push(record.total_allocated);
    }

    fn number(&mut self, block: Block) -> u32 {
        let Self { table, known, .. } = self;
        let is_it = |&number: &u32| table[number as usize] == block;
        if let Some(&number) = known.find(block.hash(), is_it) {
            return number;
        }
        let number = u32::try_from(table.len()).expect("fewer than 2^32 blocks");
        table.push(block);
        let table = &*table;
        known.insert_unique(block.hash(), number, |&n| table[n as usize].hash());
        number
    }

    /// Sorts the records by time, keeping the order of equal times. Returns the new order if it
    /// changed: for each place, the index of the record that moves there.
    pub(crate) fn settle(&mut self) -> Option<Vec<u32>> {
        self.known = HashTable::new();
        if self.is_sorted || self.is_empty() {
            return None;
        }
        let times: Vec<u64> = self.times.iter().collect();
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by_key(|&index| times[index as usize]);
        self.times = self.times.reordered(&order);
        self.totals = self.totals.reordered(&order);
        self.blocks = order.iter().map(|&i| self.blocks[i as usize]).collect();
        self.is_sorted = true;
        Some(order)
    }
}

impl Block {
    fn record(&self, time: Nanos, total_allocated: u64) -> MemoryRecord {
        MemoryRecord {
            time,
            address: self.address,
            bytes: self.bytes,
            total_allocated,
            total_reserved: self.total_reserved,
            thread: self.thread,
            stack: self.stack,
            device: self.device,
            device_index: self.device_index,
        }
    }
}

/// Iterates over memory records in time order.
#[derive(Clone, Debug)]
pub struct MemoryRecordsIter<'a> {
    records: &'a MemoryRecords,
    next: usize,
}

impl Iterator for MemoryRecordsIter<'_> {
    type Item = MemoryRecord;

    fn next(&mut self) -> Option<MemoryRecord> {
        let index = self.next;
        let found = (index < self.records.len()).then(|| self.records.at(index))?;
        self.next += 1;
        Some(found)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.records.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for MemoryRecordsIter<'_> {}

impl<'a> IntoIterator for &'a MemoryRecords {
    type Item = MemoryRecord;
    type IntoIter = MemoryRecordsIter<'a>;

    fn into_iter(self) -> MemoryRecordsIter<'a> {
        self.iter()
    }
}

impl FromIterator<MemoryRecord> for MemoryRecords {
    fn from_iter<I: IntoIterator<Item = MemoryRecord>>(records: I) -> Self {
        let mut collected = Self::default();
        collected.extend(records);
        collected
    }
}

impl Extend<MemoryRecord> for MemoryRecords {
    fn extend<I: IntoIterator<Item = MemoryRecord>>(&mut self, records: I) {
        let records = records.into_iter();
        self.reserve(records.size_hint().0);
        for record in records {
            self.push(&record);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_record() -> impl Strategy<Value = MemoryRecord> {
        // Few distinct values, so that some are shared, and some that need all their bits.
        let number = || prop_oneof![0_u64..4, any::<u64>()];
        let device = prop::sample::select(vec![DeviceKind::Cpu, DeviceKind::Cuda]);
        let numbers = (number(), number(), number(), number(), number());
        (numbers, 0_u32..3, 0_u32..3, device, -1_i16..2).prop_map(
            |((time, address, bytes, allocated, reserved), thread, stack, device, device_index)| {
                MemoryRecord {
                    time: Nanos(time),
                    address,
                    bytes: bytes as i64,
                    total_allocated: allocated,
                    total_reserved: reserved,
                    thread: ThreadId::from_raw(thread),
                    stack: StackId::from_raw(stack),
                    device,
                    device_index,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn records_come_out_whole_and_in_time_order(
            given in prop::collection::vec(any_record(), 0..40),
        ) {
            let mut records: MemoryRecords = given.iter().copied().collect();
            prop_assert_eq!(&records.iter().collect::<Vec<_>>(), &given);
            let order = records.settle();
            let mut sorted = given.clone();
            sorted.sort_by_key(|record| record.time);
            prop_assert_eq!(&records.iter().collect::<Vec<_>>(), &sorted);
            let order = order.unwrap_or_else(|| (0..given.len() as u32).collect());
            let moved: Vec<_> = order.iter().map(|&index| given[index as usize]).collect();
            prop_assert_eq!(moved, sorted);
        }
    }

    #[test]
    fn what_records_share_is_held_once() {
        let record = MemoryRecord {
            time: Nanos(1),
            address: 7,
            bytes: 64,
            total_allocated: 64,
            total_reserved: 0,
            thread: ThreadId::from_raw(0),
            stack: StackId::NONE,
            device: DeviceKind::Cpu,
            device_index: -1,
        };
        let later = (0..9).map(|time| MemoryRecord {
            time: Nanos(time),
            total_allocated: time,
            ..record
        });
        let records: MemoryRecords = later.collect();
        assert_eq!((records.len(), records.distinct().count()), (9, 1));
    }
}
