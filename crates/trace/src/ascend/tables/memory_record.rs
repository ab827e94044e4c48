//! `memory_record.csv`: the memory of each component of the software over time.

use std::io::Read;

use mindprof_model::{DeviceKind, MemoryRecord, Nanos, StackId};

use super::Table;
use crate::ascend::assembly::Assembly;
use crate::error::Result;
use crate::reading::PartReading;

/// The component that holds the program's tensors: torch's allocator.
const ALLOCATOR: &str = "PTA";
const BYTES_PER_MEGABYTE: f64 = 1024.0 * 1024.0;

/// Reads a file alone.
pub(super) fn read(input: impl Read) -> Result<PartReading> {
    let mut assembly = Assembly::default();
    let records = read_memory_record(input)?;
    let first = records.iter().map(|(_, record)| record.time).min();
    let zero = first.unwrap_or_default();
    let thread = assembly.thread(DeviceKind::Cpu, 0, 0);
    let mut reading = assembly.into_reading(&[]);
    reading.part.reference_unix_ns = zero.0;
    reading
        .part
        .add_memory_records(records.into_iter().map(|(_, record)| MemoryRecord {
            time: Nanos(record.time.0 - zero.0),
            thread,
            ..record
        }));
    Ok(reading)
}

/// Reads the records of torch's allocator, each with its device. Their times count from the Unix
/// epoch. The file has totals; a record's own bytes are the change since the one before.
pub(in crate::ascend) fn read_memory_record(input: impl Read) -> Result<Vec<(u64, MemoryRecord)>> {
    let table = Table::open(input)?;
    let place = |names: &[&str]| table.column(names);
    let (component, time) = (place(&["Component"]), place(&["Timestamp(us)"]));
    let allocated = place(&["Total Allocated(MB)"]);
    let reserved = place(&["Total Reserved(MB)"]);
    let device = place(&["Device Type", "Device"]);
    let mut records: Vec<(u64, MemoryRecord)> = Vec::new();
    table.each_row(|fields| {
        let Some(time) = fields
            .nanoseconds(time)
            .and_then(|time| u64::try_from(time).ok())
        else {
            return Ok(());
        };
        if fields.text(component) != ALLOCATOR {
            return Ok(());
        }
        let bytes = |column| {
            let megabytes: f64 = fields.text(column).parse().unwrap_or(0.0);
            (megabytes * BYTES_PER_MEGABYTE).round() as u64
        };
        // `NPU:0`
        let device = fields.text(device).rsplit(':').next();
        let device: u64 = device.and_then(|index| index.parse().ok()).unwrap_or(0);
        records.push((
            device,
            MemoryRecord {
                time: Nanos(time),
                address: 0,
                bytes: 0,
                total_allocated: bytes(allocated),
                total_reserved: bytes(reserved),
                thread: mindprof_model::ThreadId::from_raw(0),
                stack: StackId::NONE,
                device: DeviceKind::PrivateUse1,
                device_index: i16::try_from(device).unwrap_or(0),
            },
        ));
        Ok(())
    })?;
    records.sort_by_key(|(device, record)| (*device, record.time));
    let mut before: Option<(u64, u64)> = None;
    for (device, record) in &mut records {
        let last = before
            .filter(|(of, _)| of == device)
            .map_or(0, |(_, total)| total);
        record.bytes = record.total_allocated as i64 - last as i64;
        before = Some((*device, record.total_allocated));
    }
    Ok(records)
}
