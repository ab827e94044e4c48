//! The databases of Ascend profilers: `ascend_pytorch_profiler_{rank}.db`,
//! `ascend_mindspore_profiler_{rank}.db` and `msmonitor_*.db`.
//!
//! Each table is read once, and only the columns that a profile has a place for. Tables and columns
//! that a version does not write are missing data, not errors.

use std::fs;
use std::path::Path;

use self::connection::Database;
use super::assembly::Assembly;
use crate::error::{Error, Result};
use crate::read_options::{ReadOptions, UnknownArgs};
use crate::readers::Reader;
use crate::reading::PartReading;
use crate::scan::Source;

mod connection;
mod counters;
mod device;
mod facts;
mod kernels;
mod links;
mod memory;
mod names;
mod program;

pub(crate) use self::connection::MAGIC;
use self::names::Names;

/// The tables of which a profile has at least one.
const EVENT_TABLES: [&str; 5] = [
    "PYTORCH_API",
    "CANN_API",
    "TASK",
    "COMMUNICATION_OP",
    "MSTX_EVENTS",
];

/// The other tables whose rows become events.
const RANGE_TABLES: [&str; 2] = ["GC_RECORD", "STEP_TIME"];

/// Reads databases from memory, such as compressed ones.
pub(crate) struct DatabaseReader;

impl Reader for DatabaseReader {
    fn recognizes(&self, head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    fn read(&self, mut source: Source<'_>, options: &ReadOptions<'_>) -> Result<PartReading> {
        let bytes = source.all_bytes()?;
        read(&Database::read(bytes.as_slice(), bytes.len())?, options)
    }
}

/// Reads a database file.
///
/// # Errors
/// If it is damaged, locked, or not a database of an Ascend profiler.
pub(crate) fn read_database_file(path: &Path, options: &ReadOptions<'_>) -> Result<PartReading> {
    if let Some(limit) = options.max_bytes
        && fs::metadata(path)?.len() > limit
    {
        return Err(Error::TooMuch { limit });
    }
    read(&Database::open(path)?, options)
}

/// A database being read.
struct DatabaseReading<'a> {
    database: &'a Database,
    names: Names,
    assembly: Assembly,
    keeps_arguments: bool,
    /// Whether numbers are kept that only tell tasks apart.
    keeps_ids: bool,
    /// Sentences about what was left out.
    left_out: Vec<String>,
}

fn read(database: &Database, options: &ReadOptions<'_>) -> Result<PartReading> {
    let tables = database.tables()?;
    let is_there = |table: &&str| tables.iter().any(|name| name == table);
    let mut found: Vec<&str> = EVENT_TABLES.into_iter().filter(is_there).collect();
    let mut without_times: Vec<&str> = Vec::new();
    for table in &found {
        let columns = database.columns(table)?;
        if !columns.iter().any(|column| column == "startNs") {
            without_times.push(table);
        }
    }
    found.retain(|table| !without_times.contains(table));
    if let [table, ..] = without_times.as_slice()
        && found.is_empty()
    {
        let found = format!("{table} without the column startNs");
        return Err(Error::NotAProfile { found });
    }
    if found.is_empty() {
        let found = match tables.as_slice() {
            [] => "no table".to_owned(),
            tables => tables
                .iter()
                .take(8)
                .cloned()
                .collect::<Vec<_>>()
                .join(", "),
        };
        return Err(Error::NotAProfile { found });
    }
    let mut assembly = Assembly::default();
    let mut rows = 0;
    for table in found
        .into_iter()
        .chain(RANGE_TABLES.into_iter().filter(is_there))
    {
        rows += database.most_rows(table)?;
    }
    assembly.reserve(rows);
    let names = Names::read(database, &mut assembly.part.strings)?;
    let mut reading = DatabaseReading {
        database,
        names,
        assembly,
        keeps_arguments: options.unknown.are_kept(),
        keeps_ids: options.unknown == UnknownArgs::Keep,
        left_out: Vec::new(),
    };
    reading.read_program()?;
    reading.read_steps()?;
    reading.read_device()?;
    reading.read_memory()?;
    reading.assembly.sort();
    reading.link()?;
    let metadata = reading.metadata()?;
    let mut read = reading.assembly.into_reading(&metadata);
    read.sources.extend(reading.left_out);
    Ok(read)
}
