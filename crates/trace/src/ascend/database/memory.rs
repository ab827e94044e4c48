//! The memory of the NPU: `MEMORY_RECORD` of torch's allocator and the graph engine, `OP_MEMORY` of
//! the blocks of operators, and `NPU_MODULE_MEM` of the modules of CANN.

use rustc_hash::FxHashMap;

use super::DatabaseReading;
use super::connection::integer;
use crate::ascend::memory::{MemoryBlock, MemoryRow};
use crate::error::Result;

const RECORD_COLUMNS: [&str; 5] = [
    "component",
    "timestamp",
    "totalAllocated",
    "totalReserved",
    "deviceId",
];
/// The documentation of Ascend spells the third one `acllocationTime`, its programs do not.
const BLOCK_COLUMNS: [&str; 5] = ["name", "size", "allocationTime", "releaseTime", "deviceId"];
const MODULE_COLUMNS: [&str; 4] = ["moduleId", "timestampNs", "totalReserved", "deviceId"];

impl DatabaseReading<'_> {
    pub(super) fn read_memory(&mut self) -> Result<()> {
        let database = self.database;
        database.each_row("MEMORY_RECORD", &RECORD_COLUMNS, |row| {
            let strings = &mut self.assembly.part.strings;
            let component = self.names.string(row, 0, strings)?;
            let bytes = |column| -> Result<Option<u64>> {
                Ok(integer(row, column)?.and_then(|bytes| u64::try_from(bytes).ok()))
            };
            self.assembly.memory.add(MemoryRow {
                component: strings.text(component),
                device: device_of(integer(row, 4)?),
                time_ns: integer(row, 1)?,
                allocated: bytes(2)?,
                reserved: bytes(3)?,
            });
            Ok(())
        })?;
        database.each_row("OP_MEMORY", &BLOCK_COLUMNS, |row| {
            let strings = &mut self.assembly.part.strings;
            let operator = self.names.string(row, 0, strings)?;
            let (size, allocated) = (integer(row, 1)?, integer(row, 2)?);
            if let (Some(bytes), Some(allocated_ns)) = (size.filter(|&size| size > 0), allocated) {
                self.assembly.memory.add_block(MemoryBlock {
                    operator,
                    device: device_of(integer(row, 4)?),
                    bytes,
                    allocated_ns,
                    released_ns: integer(row, 3)?,
                });
            }
            Ok(())
        })?;
        let mut modules: FxHashMap<i64, String> = FxHashMap::default();
        database.each_row("ENUM_MODULE", &["id", "name"], |row| {
            let strings = &mut self.assembly.part.strings;
            let name = self.names.string(row, 1, strings)?;
            if let Some(id) = integer(row, 0)? {
                modules.insert(id, strings.text(name).to_owned());
            }
            Ok(())
        })?;
        database.each_row("NPU_MODULE_MEM", &MODULE_COLUMNS, |row| {
            let Some(id) = integer(row, 0)? else {
                return Ok(());
            };
            let name = modules
                .entry(id)
                .or_insert_with(|| format!("module {id}"))
                .as_str();
            let reserved = integer(row, 2)?.and_then(|bytes| u64::try_from(bytes).ok());
            self.assembly.memory.add(MemoryRow {
                component: name,
                device: device_of(integer(row, 3)?),
                time_ns: integer(row, 1)?,
                allocated: None,
                reserved,
            });
            Ok(())
        })?;
        Ok(())
    }
}

fn device_of(id: Option<i64>) -> u64 {
    id.and_then(|id| u64::try_from(id).ok()).unwrap_or(0)
}
