//! Fills the tables of an Ascend profiler's database with arbitrary values of any type, and reads it. The reader must
//! not panic, and a profile that it accepts must be writable as a trace that is read again.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mindprof_trace::{ReadOptions, read_trace_with, write_trace};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

/// All tables that the reader knows, with their columns.
const TABLES: [(&str, &str); 21] = [
    ("STRING_IDS", "id, value"),
    ("ENUM_API_TYPE", "id, name"),
    ("ENUM_HCCL_DATA_TYPE", "id, name"),
    ("ENUM_MODULE", "id, name"),
    (
        "PYTORCH_API",
        "startNs, endNs, globalTid, connectionId, name, type, sequenceNumber, fwdThreadId, inputShapes, inputDtypes, \
         callchainId",
    ),
    ("PYTORCH_CALLCHAINS", "id, stackDepth, stack"),
    ("CONNECTION_IDS", "id, connectionId"),
    ("CANN_API", "startNs, endNs, globalTid, connectionId, name, type"),
    ("GC_RECORD", "startNs, endNs, globalTid"),
    ("MSTX_EVENTS", "startNs, endNs, globalTid, message"),
    ("STEP_TIME", "startNs, endNs, id"),
    (
        "TASK",
        "startNs, endNs, deviceId, connectionId, streamId, globalTaskId, taskType, taskId, modelId",
    ),
    (
        "COMPUTE_TASK_INFO",
        "globalTaskId, name, opType, taskType, inputShapes, inputDataTypes, outputShapes, outputDataTypes, blockNum, \
         mixBlockNum",
    ),
    ("TASK_PMU_INFO", "globalTaskId, name, value"),
    ("COMMUNICATION_TASK_INFO", "globalTaskId"),
    (
        "COMMUNICATION_OP",
        "startNs, endNs, deviceId, connectionId, opName, groupName, algType, count, dataType",
    ),
    ("MEMORY_RECORD", "component, timestamp, totalAllocated, totalReserved, deviceId"),
    ("NPU_MODULE_MEM", "moduleId, timestampNs, totalReserved, deviceId"),
    (
        "OP_MEMORY",
        "name, size, allocationTime, releaseTime, activeReleaseTime, duration, activeDuration, \
         allocationTotalAllocated, allocationTotalReserved, allocationTotalActive, releaseTotalAllocated, \
         releaseTotalReserved, releaseTotalActive, streamPtr, deviceId",
    ),
    ("RANK_DEVICE_MAP", "rankId, deviceId"),
    ("META_DATA", "name, value"),
];

/// Texts that mean something to the reader.
const TEXTS: [&str; 16] = [
    "",
    "aten::mm",
    "autograd::engine::evaluate_function: MmBackward0",
    "MmBackward0",
    "ProfilerStep#7",
    "Optimizer.step#Adam.step",
    "train.py(3): step",
    "EVENT_WAIT",
    "hcom_allReduce__428_0_1",
    "4,1024;2;",
    "[[4, 1024], [2]]",
    "FLOAT16;INT64",
    "PTA",
    "aic_mac_ratio",
    "ENV_VARIABLES",
    "{\"ASCEND_LAUNCH_BLOCKING\": \"1\"}",
];

#[derive(Arbitrary, Debug)]
enum Cell {
    Nothing,
    /// The number of a text, a device, a stream or a task.
    Small(u8),
    /// A time shortly after another one.
    Time(u16),
    Integer(i64),
    Real(f64),
    Known(u8),
    Text(String),
    Blob(Vec<u8>),
}

impl Cell {
    fn value(&self) -> Value {
        match self {
            Self::Nothing => Value::Null,
            Self::Small(number) => Value::Integer(i64::from(*number) - 1),
            Self::Time(after) => Value::Integer(1_704_161_511_420_306_491 + i64::from(*after)),
            Self::Integer(number) => Value::Integer(*number),
            Self::Real(number) => Value::Real(*number),
            Self::Known(index) => Value::Text(TEXTS[usize::from(*index) % TEXTS.len()].to_owned()),
            Self::Text(text) => Value::Text(text.clone()),
            Self::Blob(bytes) => Value::Blob(bytes.clone()),
        }
    }
}

#[derive(Arbitrary, Debug)]
struct Database {
    rows: Vec<(u8, Vec<Cell>)>,
    /// The table that is missing.
    missing: Option<u8>,
}

impl Database {
    fn bytes(&self) -> Option<Vec<u8>> {
        let missing = self.missing.map(|index| usize::from(index) % TABLES.len());
        let mut connection = Connection::open_in_memory().ok()?;
        connection.execute_batch("PRAGMA page_size = 512; BEGIN").ok()?;
        for (index, (table, columns)) in TABLES.iter().enumerate() {
            if Some(index) != missing {
                connection.execute_batch(&format!("CREATE TABLE {table} ({columns})")).ok()?;
            }
        }
        if missing != Some(0) {
            for (id, text) in (0_i64..).zip(TEXTS) {
                connection.execute("INSERT INTO STRING_IDS VALUES (?, ?)", (id, text)).ok()?;
            }
        }
        for (table, cells) in &self.rows {
            let index = usize::from(*table) % TABLES.len();
            if Some(index) == missing {
                continue;
            }
            let (table, columns) = TABLES[index];
            let count = columns.split(',').count();
            let cells = (0..count).map(|place| cells.get(place).map_or(Value::Null, Cell::value));
            let marks = vec!["?"; count].join(", ");
            let sql = format!("INSERT INTO {table} VALUES ({marks})");
            connection.execute(&sql, params_from_iter(cells)).ok()?;
        }
        connection.execute_batch("COMMIT").ok()?;
        Some(connection.serialize("main").ok()?.to_vec())
    }
}

fuzz_target!(|database: Database| {
    let Some(bytes) = database.bytes() else {
        return;
    };
    let Ok(reading) = read_trace_with(&bytes, &ReadOptions::default()) else {
        return;
    };
    let mut text = Vec::new();
    write_trace(&reading.profile, "trace.json", &mut text).expect("memory takes all bytes");
    let again = read_trace_with(&text, &ReadOptions::default()).expect("what we wrote is a trace");
    assert_eq!(again.profile.events().len(), reading.profile.events().len());
});
