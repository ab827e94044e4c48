//! The memory of an NPU: the curve of torch's allocator as memory records, and the totals of each
//! component of the software.
//!
//! The rows come from `MEMORY_RECORD` and `NPU_MODULE_MEM` of a database, or from
//! `memory_record.csv` and `npu_module_mem.csv`.

use mindprof_model::{
    DeviceKind, MemoryRecord, Metadata, Nanos, Part, StackId, StringTable, Thread, ThreadId,
};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

/// The component that holds the program's tensors: torch's allocator.
const ALLOCATOR: &str = "PTA";
/// The graph engine, and the sum of both, which says nothing new without it.
const GRAPH_ENGINE: &str = "GE";
const SUM: &str = "PTA+GE";

/// The largest number of bytes and the latest time that are accepted.
const LARGEST: u64 = i64::MAX as u64;

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

/// The memory of all devices, as rows are added in any order.
#[derive(Debug, Default)]
pub(super) struct NpuMemory {
    /// The records of torch's allocator. Their times count from the Unix epoch, and their threads
    /// are not set yet.
    records: Vec<MemoryRecord>,
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
        let Some(bytes) = bytes.filter(|&bytes| bytes <= LARGEST) else {
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
        let Some(time) = row.time_ns.and_then(|time| u64::try_from(time).ok()) else {
            return;
        };
        if row.component.is_empty() {
            return;
        }
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
        self.components[index].allocated.add(time, row.allocated);
        self.components[index].reserved.add(time, row.reserved);
        let allocated = row.allocated.filter(|&bytes| bytes <= LARGEST);
        if row.component == ALLOCATOR
            && let Some(total_allocated) = allocated
        {
            self.records.push(MemoryRecord {
                time: Nanos(time),
                address: 0,
                bytes: 0,
                total_allocated,
                total_reserved: row.reserved.map_or(0, |bytes| bytes.min(LARGEST)),
                thread: ThreadId::from_raw(0),
                stack: StackId::NONE,
                device: DeviceKind::PrivateUse1,
                device_index: i16::try_from(row.device).unwrap_or(0),
            });
        }
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
        let zero = part.reference_unix_ns;
        part.add_memory_records(self.records.into_iter().map(|record| MemoryRecord {
            // The curve may begin before the first event, where the profile has no time.
            time: Nanos(record.time.0.saturating_sub(zero)),
            thread,
            ..record
        }));
        true
    }

    /// Sorts the records and finds their own bytes: the files have totals, of which a record's own
    /// bytes are the change since the one before.
    fn settle_records(&mut self) {
        self.records
            .sort_by_key(|record| (record.device_index, record.time));
        let mut before: Option<(i16, u64)> = None;
        for record in &mut self.records {
            let last = before
                .filter(|(of, _)| *of == record.device_index)
                .map_or(0, |(_, total)| total);
            record.bytes = record.total_allocated as i64 - last as i64;
            before = Some((record.device_index, record.total_allocated));
        }
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
