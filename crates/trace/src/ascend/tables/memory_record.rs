//! `memory_record.csv` and `npu_module_mem.csv`: the memory of each component of the software over
//! time.

use std::io::Read;

use super::{Fields, Table};
use crate::ascend::assembly::Assembly;
use crate::ascend::memory::{MemoryRow, NpuMemory};
use crate::error::Result;
use crate::reading::PartReading;

/// The units of bytes in the names of columns: `Total Reserved(MB)`.
const UNITS: [(&str, f64); 3] = [("MB", 1_048_576.0), ("KB", 1024.0), ("B", 1.0)];

/// Reads a file alone.
pub(super) fn read(input: impl Read) -> Result<PartReading> {
    let mut assembly = Assembly::default();
    read_memory_record(input, &mut assembly.memory)?;
    Ok(assembly.into_reading(&[]))
}

/// Adds the rows of a file to the memory of the NPU.
pub(in crate::ascend) fn read_memory_record(
    input: impl Read,
    memory: &mut NpuMemory,
) -> Result<()> {
    let table = Table::open(input)?;
    let place = |names: &[&str]| table.column(names);
    let (component, time) = (place(&["Component"]), place(&["Timestamp(us)"]));
    let allocated = Amount::of(&table, "Total Allocated");
    let reserved = Amount::of(&table, "Total Reserved");
    let device = place(&["Device Type", "Device"]);
    table.each_row(|fields| {
        // `NPU:0`
        let index = fields.text(device).rsplit(':').next();
        memory.add(MemoryRow {
            component: fields.text(component),
            device: index.and_then(|index| index.parse().ok()).unwrap_or(0),
            time_ns: fields.nanoseconds(time),
            allocated: allocated.and_then(|column| column.bytes(fields)),
            reserved: reserved.and_then(|column| column.bytes(fields)),
        });
        Ok(())
    })
}

/// A column with amounts of memory.
#[derive(Clone, Copy, Debug)]
struct Amount {
    column: usize,
    bytes_per_unit: f64,
}

impl Amount {
    /// Finds a column by its name before the unit.
    fn of<R: Read>(table: &Table<R>, name: &str) -> Option<Self> {
        UNITS.into_iter().find_map(|(unit, bytes_per_unit)| {
            let column = table.column(&[&format!("{name}({unit})")]);
            (column != usize::MAX).then_some(Self {
                column,
                bytes_per_unit,
            })
        })
    }

    fn bytes(self, fields: Fields<'_>) -> Option<u64> {
        let amount: f64 = fields.text(self.column).parse().ok()?;
        let bytes = (amount * self.bytes_per_unit).round();
        (bytes.is_finite() && bytes >= 0.0).then_some(bytes as u64)
    }
}
