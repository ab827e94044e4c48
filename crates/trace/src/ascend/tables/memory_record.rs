//! `memory_record.csv` and `npu_module_mem.csv`: the memory of each component of the software over
//! time.

use std::io::Read;

use super::{Fields, Table};
use crate::ascend::assembly::Assembly;
use crate::ascend::memory::{MemoryRow, NpuMemory};
use crate::error::{Error, Result};
use crate::reading::PartReading;
use crate::repairs::{Repair, Repairs};

/// The units of bytes in the names of columns: `Total Reserved(MB)`. All of them are powers of 1024.
const UNITS: [(&str, f64); 8] = [
    ("GB", 1_073_741_824.0),
    ("GiB", 1_073_741_824.0),
    ("MB", 1_048_576.0),
    ("MiB", 1_048_576.0),
    ("KB", 1024.0),
    ("KiB", 1024.0),
    ("B", 1.0),
    ("Bytes", 1.0),
];

/// Reads a file alone.
pub(super) fn read(input: impl Read) -> Result<PartReading> {
    let mut assembly = Assembly::default();
    let repairs = read_memory_record(input, &mut assembly.memory)?;
    if assembly.memory.is_empty() && repairs.is_empty() {
        return Err(Error::NoRows);
    }
    assembly.repairs.merge(&repairs);
    Ok(assembly.into_reading(&[]))
}

/// Adds the rows of a file to the memory of the NPU.
pub(in crate::ascend) fn read_memory_record(
    input: impl Read,
    memory: &mut NpuMemory,
) -> Result<Repairs> {
    let table = Table::open(input)?;
    let place = |names: &[&str]| table.column(names);
    let (component, time) = (place(&["Component"]), place(&["Timestamp(us)"]));
    let allocated = Amount::of(&table, "Total Allocated")?;
    let reserved = Amount::of(&table, "Total Reserved")?;
    if allocated.is_none() && reserved.is_none() {
        return Err(Error::MissingColumn {
            file: "memory_record.csv",
            column: "Total Reserved(MB)",
            instead: "a file that has it",
        });
    }
    let device = place(&["Device Type", "Device"]);
    let mut unreadable = 0;
    let mut amount = |column: Option<Amount>, fields: Fields<'_>| {
        let stated = column.map_or(Stated::Nothing, |column| column.stated(fields));
        unreadable += u64::from(matches!(stated, Stated::Unreadable));
        match stated {
            Stated::Bytes(bytes) => Some(bytes),
            Stated::Nothing | Stated::Unreadable => None,
        }
    };
    let mut without_time = 0;
    let mut repairs = table.each_row(|fields| {
        // `NPU:0`
        let index = fields.text(device).rsplit(':').next();
        let time_ns = fields.nanoseconds(time);
        without_time += u64::from(time_ns.is_none());
        memory.add(MemoryRow {
            component: fields.text(component),
            device: index.and_then(|index| index.parse().ok()).unwrap_or(0),
            time_ns,
            allocated: amount(allocated, fields),
            reserved: amount(reserved, fields),
        });
        Ok(())
    })?;
    repairs.add(Repair::UnreadableMemory, unreadable);
    repairs.add(Repair::NoTime, without_time);
    Ok(repairs)
}

/// A column with amounts of memory.
#[derive(Clone, Copy, Debug)]
struct Amount {
    column: usize,
    bytes_per_unit: f64,
}

/// The amount that a field states.
#[derive(Clone, Copy, Debug)]
enum Stated {
    Bytes(u64),
    /// The component does not tell it.
    Nothing,
    /// It is no number, or negative.
    Unreadable,
}

impl Amount {
    /// Finds a column by its name before the unit. Returns `None` if there is none, and an error if
    /// the unit is not known.
    fn of<R: Read>(table: &Table<R>, name: &str) -> Result<Option<Self>> {
        for (unit, bytes_per_unit) in UNITS {
            let column = table.column(&[&format!("{name}({unit})")]);
            if column != usize::MAX {
                return Ok(Some(Self {
                    column,
                    bytes_per_unit,
                }));
            }
        }
        let is_it = |column: &&str| column.trim().starts_with(name);
        match table.columns.iter().find(is_it) {
            None => Ok(None),
            Some(column) => Err(Error::UnknownUnit {
                column: column.trim().into(),
            }),
        }
    }

    fn stated(self, fields: Fields<'_>) -> Stated {
        let text = fields.number(self.column);
        if matches!(text.as_ref(), "" | "N/A") {
            return Stated::Nothing;
        }
        let amount = text.parse::<f64>().unwrap_or(f64::NAN);
        let bytes = (amount * self.bytes_per_unit).round();
        if bytes >= 0.0 {
            // An infinite number becomes the largest one, which is absurd.
            Stated::Bytes(bytes as u64)
        } else {
            Stated::Unreadable
        }
    }
}
