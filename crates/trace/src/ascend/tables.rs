//! The CSV files of Ascend profilers: `kernel_details.csv`, `memory_record.csv` and
//! `npu_module_mem.csv` yield parts.
//! `operator_details.csv` and `step_trace_time.csv` hold sums without times.

use std::io::Read;

use csv::{Reader as CsvReader, ReaderBuilder, StringRecord};

use crate::error::{Error, Result};
use crate::read_options::ReadOptions;
use crate::readers::Reader;
use crate::reading::PartReading;
use crate::scan::{Source, unwrapped};

mod kernel_details;
mod memory_record;
mod step_times;

pub(super) use self::kernel_details::{each_kernel, entries};
pub(super) use self::memory_record::read_memory_record;
pub(super) use self::step_times::read_step_times;

/// Reads CSV files, told apart by their columns.
pub(crate) struct TableReader;

/// The CSV files that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableKind {
    KernelDetails,
    OperatorDetails,
    StepTimes,
    MemoryRecord,
}

impl TableKind {
    /// Returns the kind of a file that begins with these bytes.
    fn of(head: &[u8]) -> Option<Self> {
        let head = String::from_utf8_lossy(head);
        // It would be a part of the first column. Readers are asked again without it.
        if head.starts_with('\u{feff}') {
            return None;
        }
        let line = head.lines().next()?;
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let has = |wanted: &[&str]| wanted.iter().all(|column| columns.contains(column));
        if has(&["Task ID", "Stream ID", "Name"]) {
            Some(Self::KernelDetails)
        } else if has(&["Name", "Input Shapes", "Call Stack"]) {
            Some(Self::OperatorDetails)
        } else if has(&["Step", "Computing"]) {
            Some(Self::StepTimes)
        } else if has(&["Component", "Timestamp(us)"]) {
            Some(Self::MemoryRecord)
        } else {
            None
        }
    }
}

impl Reader for TableReader {
    fn recognizes(&self, head: &[u8]) -> bool {
        TableKind::of(head).is_some()
    }

    fn read(&self, mut source: Source<'_>, options: &ReadOptions<'_>) -> Result<PartReading> {
        let sums = |file| Err(Error::SumsWithoutTimes { file });
        source.forget_lines();
        match TableKind::of(source.window()) {
            Some(TableKind::KernelDetails) => kernel_details::read(source, options),
            Some(TableKind::MemoryRecord) => memory_record::read(source),
            Some(TableKind::OperatorDetails) => sums("operator_details.csv"),
            Some(TableKind::StepTimes) => sums("step_trace_time.csv"),
            None => Err(source.not_json(0, "expected value")),
        }
    }
}

/// A CSV file being read, with the names of its columns.
struct Table<R> {
    rows: CsvReader<R>,
    columns: StringRecord,
}

impl<R: Read> Table<R> {
    fn open(input: R) -> Result<Self> {
        let mut rows = ReaderBuilder::new().flexible(true).from_reader(input);
        let columns = rows.headers().map_err(error_of)?.clone();
        Ok(Self { rows, columns })
    }

    /// Returns the place of the first of these columns that the file has. A place behind the last
    /// column reads as an empty field.
    fn column(&self, names: &[&str]) -> usize {
        let place = |name: &&str| {
            self.columns
                .iter()
                .position(|column| column.trim_start_matches('\u{feff}').trim() == *name)
        };
        names.iter().find_map(place).unwrap_or(usize::MAX)
    }

    /// Calls `each` with every row.
    fn each_row(mut self, mut each: impl FnMut(Fields<'_>) -> Result<()>) -> Result<()> {
        let mut record = StringRecord::new();
        while self.rows.read_record(&mut record).map_err(error_of)? {
            each(Fields(&record))?;
        }
        Ok(())
    }
}

/// The fields of one row.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a StringRecord);

impl<'a> Fields<'a> {
    /// Returns the text in a column, without the tab that keeps spreadsheets from rounding it.
    fn text(self, column: usize) -> &'a str {
        self.0.get(column).unwrap_or_default().trim()
    }

    /// Returns a time in microseconds as nanoseconds.
    fn nanoseconds(self, column: usize) -> Option<i64> {
        crate::chrome::nanoseconds_of(self.text(column))
    }

    fn integer(self, column: usize) -> Option<u64> {
        self.text(column).parse().ok()
    }
}

fn error_of(error: csv::Error) -> Error {
    let what = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => unwrapped(error),
        _ => Error::BadTable { what },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_column() {
        let text = "\u{feff}Component,Timestamp(us)\r\nAPP,1\r\n";
        let table = Table::open(text.as_bytes()).unwrap();
        let component = table.column(&["Component"]);
        let mut names = Vec::new();
        table
            .each_row(|row| {
                names.push(row.text(component).to_owned());
                Ok(())
            })
            .unwrap();
        assert_eq!(names, ["APP"]);
    }

    #[test]
    fn files_are_told_apart_by_their_columns() {
        for (head, kind) in [
            (
                "Step Id,Model ID,Task ID,Stream ID,Name,Type,",
                Some(TableKind::KernelDetails),
            ),
            (
                "Device_id,Model ID,Task ID,Stream ID,Name,Ty",
                Some(TableKind::KernelDetails),
            ),
            (
                "Name,Input Shapes,Call Stack,Host Self",
                Some(TableKind::OperatorDetails),
            ),
            (
                "Device_id,Step,Computing,Communication(",
                Some(TableKind::StepTimes),
            ),
            (
                "Component,Timestamp(us),Total Allocated(",
                Some(TableKind::MemoryRecord),
            ),
            ("Name,Age\nStep,Computing", None),
            ("\u{feff}Device_id,Step,Computing", None),
            ("{\"traceEvents\"", None),
        ] {
            assert_eq!(TableKind::of(head.as_bytes()), kind, "{head}");
        }
    }
}
