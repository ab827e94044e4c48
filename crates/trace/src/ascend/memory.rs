//! The memory of an NPU: the curve of torch's allocator as memory records, and the totals of each
//! component of the software.
//!
//! The rows come from `MEMORY_RECORD` and `NPU_MODULE_MEM` of a database, or from
//! `memory_record.csv` and `npu_module_mem.csv`. `OP_MEMORY` tells which changes of the allocator's
//! curve are one block, and which operator allocated it.

use mindprof_model::{
    Category, DeviceKind, MemoryRecord, Metadata, Nanos, Part, StackId, StringId, StringTable,
    Thread, ThreadId,
};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::assembly::{LATEST_NS, is_far, usual_time};

/// The component that holds the program's tensors: torch's allocator.
const ALLOCATOR: &str = "PTA";
/// The graph engine, and the sum of both, which says nothing new without it.
const GRAPH_ENGINE: &str = "GE";
const SUM: &str = "PTA+GE";

/// The largest plausible memory of a device, 4 TiB. A trace holds no larger change.
const LARGEST: u64 = 1 << 42;

/// One row: how much memory a component of the software had at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryRow<'a> {
    pub(super) component: &'a str,
    pub(super) device: u64,
    /// Nanoseconds since the Unix epoch.
    pub(super) time_ns: Option<i64>,
    /// The bytes that its users hold. `None` if the component does not tell.
    pub(super) allocated: Option<u64>,
    /// The bytes that it took from the device.
    pub(super) reserved: Option<u64>,
}

/// A block that an operator allocated. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryBlock {
    /// The name of the operator.
    pub(super) operator: StringId,
    pub(super) device: u64,
    pub(super) bytes: i64,
    pub(super) allocated_ns: i64,
    /// `None` if it was not released before the end of the recording.
    pub(super) released_ns: Option<i64>,
}

/// The memory of all devices, as rows are added in any order.
#[derive(Debug, Default)]
pub(super) struct NpuMemory {
    /// The records of torch's allocator. Their times count from the Unix epoch, and their threads
    /// are not set yet.
    records: Vec<MemoryRecord>,
    blocks: Vec<MemoryBlock>,
    /// The number of amounts that were left out because they are too large.
    pub(super) absurd: u64,
    components: Vec<Component>,
    places: FxHashMap<(u64, String), usize>,
}

/// The totals of a component on a device.
#[derive(Clone, Debug)]
struct Component {
    name: String,
    device: u64,
    allocated: Extremes,
    reserved: Extremes,
}

/// The largest and the last of a number of bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Extremes {
    most: Option<(u64, u64)>,
    last: Option<(u64, u64)>,
}

impl Extremes {
    fn add(&mut self, time: u64, bytes: Option<u64>) {
        let Some(bytes) = bytes else {
            return;
        };
        let is_earlier = |(most, at): &(u64, u64)| bytes == *most && time < *at;
        if self.most.is_none_or(|most| bytes > most.0) || self.most.as_ref().is_some_and(is_earlier)
        {
            self.most = Some((bytes, time));
        }
        if self.last.is_none_or(|last| time >= last.1) {
            self.last = Some((bytes, time));
        }
    }

    fn json(self) -> Value {
        let (Some((most, at)), Some((last, _))) = (self.most, self.last) else {
            return Value::Null;
        };
        json!({"peak": most, "peak_unix_ns": at, "end": last})
    }
}

impl NpuMemory {
    /// Adds a row. Rows without a time or a component say nothing.
    pub(super) fn add(&mut self, row: MemoryRow<'_>) {
        let time = row.time_ns.filter(|time| (0..=LATEST_NS).contains(time));
        let Some(time) = time.and_then(|time| u64::try_from(time).ok()) else {
            return;
        };
        if row.component.is_empty() {
            return;
        }
        let mut plausible = |bytes: Option<u64>| {
            self.absurd += u64::from(bytes.is_some_and(|bytes| bytes > LARGEST));
            bytes.filter(|&bytes| bytes <= LARGEST)
        };
        let (allocated, reserved) = (plausible(row.allocated), plausible(row.reserved));
        let place = (row.device, row.component.to_owned());
        let components = &mut self.components;
        let index = *self.places.entry(place).or_insert_with(|| {
            components.push(Component {
                name: row.component.to_owned(),
                device: row.device,
                allocated: Extremes::default(),
                reserved: Extremes::default(),
            });
            components.len() - 1
        });
        self.components[index].allocated.add(time, allocated);
        self.components[index].reserved.add(time, reserved);
        if row.component == ALLOCATOR
            && let Some(total_allocated) = allocated
        {
            self.records.push(MemoryRecord {
                time: Nanos(time),
                address: 0,
                bytes: 0,
                total_allocated,
                total_reserved: reserved.unwrap_or(0),
                thread: ThreadId::from_raw(0),
                stack: StackId::NONE,
                device: DeviceKind::PrivateUse1,
                device_index: i16::try_from(row.device).unwrap_or(0),
            });
        }
    }

    /// Adds a block. It is used if the curve has a change of its size at its time.
    pub(super) fn add_block(&mut self, block: MemoryBlock) {
        self.blocks.push(block);
    }

    /// Leaves out the records that are far away from the usual time of events, or without events
    /// from that of the records. Returns their number.
    pub(super) fn leave_out_far(&mut self, usual: Option<Nanos>) -> u64 {
        self.records.sort_by_key(|record| record.time);
        let before = self.records.len();
        let usual = usual.or_else(|| usual_time(&self.records, |record| record.time));
        if let Some(usual) = usual {
            self.records.retain(|record| !is_far(record.time, usual));
        }
        (before - self.records.len()) as u64
    }

    /// Returns whether nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.components.is_empty()
    }

    /// Returns the time of the first record.
    pub(super) fn start(&self) -> Option<Nanos> {
        self.records.iter().map(|record| record.time).min()
    }

    /// Adds the curve and the totals to a part. Totals that another file gave already are kept, and
    /// so is a curve. Returns whether there was anything new.
    pub(super) fn add_to(mut self, part: &mut Part) -> bool {
        let known = part.metadata.get(Metadata::MEMORY_COMPONENTS);
        let known: Option<Vec<Value>> = known.and_then(|known| serde_json::from_str(known).ok());
        let mut known = known.unwrap_or_default();
        let is_known = |known: &[Value], name: &str, device: u64| {
            let mut known = known.iter();
            known.any(|one| one["component"] == name && one["device"] == device)
        };
        let has_engine = self.components.iter().any(|one| one.name == GRAPH_ENGINE);
        let has_curve = known.iter().any(|one| one["component"] == ALLOCATOR);
        let before = known.len();
        for one in &self.components {
            if is_known(&known, &one.name, one.device) || (one.name == SUM && !has_engine) {
                continue;
            }
            known.push(json!({
                "component": one.name,
                "device": one.device,
                "allocated": one.allocated.json(),
                "reserved": one.reserved.json(),
            }));
        }
        if known.len() == before {
            return false;
        }
        let told = Value::Array(known).to_string();
        part.metadata.set(Metadata::MEMORY_COMPONENTS, told);
        if has_curve || self.records.is_empty() {
            return true;
        }
        self.settle_records();
        let thread = main_thread(part);
        for record in &mut self.records {
            record.thread = thread;
        }
        self.settle_blocks(part);
        let zero = part.reference_unix_ns;
        part.add_memory_records(self.records.into_iter().map(|record| MemoryRecord {
            // The curve may begin before the first event, where the profile has no time.
            time: Nanos(record.time.0.saturating_sub(zero)),
            ..record
        }));
        true
    }

    /// Sorts the records and finds their own bytes: the files have totals, of which a record's own
    /// bytes are the change since the one before. The change that led to the first total is not
    /// known, unless a block began then.
    fn settle_records(&mut self) {
        self.records
            .sort_by_key(|record| (record.device_index, record.time));
        let mut before: Option<(i16, u64)> = None;
        for record in &mut self.records {
            let last = before.filter(|(of, _)| *of == record.device_index);
            record.bytes = match last {
                Some((_, total)) => record.total_allocated as i64 - total as i64,
                None => first_change(&self.blocks, record),
            };
            before = Some((record.device_index, record.total_allocated));
        }
    }
}

/// Returns the bytes of the block that began at the time of a device's first record, or zero.
fn first_change(blocks: &[MemoryBlock], record: &MemoryRecord) -> i64 {
    let is_it = |block: &&MemoryBlock| {
        u64::try_from(block.allocated_ns) == Ok(record.time.0)
            && i16::try_from(block.device) == Ok(record.device_index)
            && u64::try_from(block.bytes).is_ok_and(|bytes| bytes <= record.total_allocated)
    };
    blocks.iter().find(is_it).map_or(0, |block| block.bytes)
}

impl NpuMemory {
    /// Gives the records of each block one address, and the thread of its operator.
    ///
    /// ```text
    /// curve      512       1536       512
    /// change         +1024      -1024
    /// block          |----------|         1024 bytes
    /// ```
    fn settle_blocks(&mut self, part: &Part) {
        let mut places: FxHashMap<(i16, u64, i64), Vec<usize>> = FxHashMap::default();
        for (index, record) in self.records.iter().enumerate().rev() {
            let place = (record.device_index, record.time.0, record.bytes);
            places.entry(place).or_default().push(index);
        }
        let operators = Operators::of(&self.blocks, part);
        for (number, block) in (1..).zip(&self.blocks) {
            let device = i16::try_from(block.device).unwrap_or(0);
            let mut take = |time: i64, bytes: i64| {
                let place = (device, u64::try_from(time).ok()?, bytes);
                places.get_mut(&place)?.pop()
            };
            let Some(begin) = take(block.allocated_ns, block.bytes) else {
                continue;
            };
            let end = block.released_ns;
            let end = end.and_then(|time| take(time, block.bytes.checked_neg()?));
            let thread = operators.thread(block, part);
            for index in [Some(begin), end].into_iter().flatten() {
                let record = &mut self.records[index];
                record.address = number;
                record.thread = thread.unwrap_or(record.thread);
            }
        }
    }
}

/// The operators that allocated blocks, by name in start order.
struct Operators {
    by_name: FxHashMap<StringId, Vec<usize>>,
}

impl Operators {
    /// The number of operators of a name that are looked at for one time: others ended long before.
    const LOOKED_AT: usize = 64;

    fn of(blocks: &[MemoryBlock], part: &Part) -> Self {
        let names = blocks.iter().map(|block| (block.operator, Vec::new()));
        let mut by_name: FxHashMap<StringId, Vec<usize>> = names.collect();
        for (index, event) in part.events().iter().enumerate() {
            let is_operator = event.category == Category::Operator;
            if let Some(found) = by_name.get_mut(&event.name).filter(|_| is_operator) {
                found.push(index);
            }
        }
        Self { by_name }
    }

    /// Returns the thread on which an operator of this name was running.
    fn thread(&self, block: &MemoryBlock, part: &Part) -> Option<ThreadId> {
        let time = u64::try_from(block.allocated_ns).ok()?;
        let time = Nanos(time.checked_sub(part.reference_unix_ns)?);
        let events = part.events();
        let found = self.by_name.get(&block.operator)?;
        let before = found.partition_point(|&index| events[index].start <= time);
        let mut around = found[..before].iter().rev().take(Self::LOOKED_AT);
        let around = around.find(|&&index| events[index].end() >= time)?;
        Some(events[*around].thread)
    }
}

/// Returns the first thread of the program. The files do not tell which thread allocated.
fn main_thread(part: &mut Part) -> ThreadId {
    let mut threads = part.threads().iter();
    let found = threads.position(|thread| thread.device == DeviceKind::Cpu);
    found.map_or_else(
        || {
            part.add_thread(Thread {
                process: 0,
                native: 0,
                name: StringTable::EMPTY,
                device: DeviceKind::Cpu,
            })
        },
        ThreadId::from_index,
    )
}
