//! The CSV files of Ascend profilers: `kernel_details.csv`, `memory_record.csv` and
//! `npu_module_mem.csv` yield parts.
//! The others hold sums without times, or lists without what gives them a meaning.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;

use csv::{Reader as CsvReader, ReaderBuilder, StringRecord};

use crate::error::{Error, Result};
use crate::read_options::ReadOptions;
use crate::readers::Reader;
use crate::reading::PartReading;
use crate::repairs::{Repair, Repairs};
use crate::scan::{Source, unwrapped};

mod encoding;
mod kernel_details;
mod memory_record;
mod step_times;

use self::encoding::{Encoding, Utf8};
pub(super) use self::kernel_details::{each_kernel, entries};
pub(super) use self::memory_record::read_memory_record;
pub(super) use self::step_times::read_step_times;

/// Reads CSV files, told apart by their columns.
pub(crate) struct TableReader;

/// The CSV files that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableKind {
    KernelDetails,
    KernelsWithoutStreams,
    MemoryRecord,
    OperatorMemory,
    /// A file of sums, with its usual name.
    Sums(&'static str),
}

/// The characters between columns.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

impl TableKind {
    /// Returns the kind of a file that begins with these bytes.
    fn of(head: &[u8]) -> Option<Self> {
        let encoding = Encoding::of(head);
        Self::of_text(&encoding.text(head)).map(|(kind, _)| kind)
    }

    /// Returns the kind of a file that begins with this text, and the separator of its columns.
    fn of_text(head: &str) -> Option<(Self, u8)> {
        // It would be a part of the first column. Readers are asked again without it.
        if head.starts_with('\u{feff}') {
            return None;
        }
        let line = head.lines().next()?;
        SEPARATORS.into_iter().find_map(|separator| {
            let columns = line.split(char::from(separator));
            let columns: Vec<&str> = columns
                .map(|column| column.trim().trim_matches('"'))
                .collect();
            Some((Self::of_columns(&columns)?, separator))
        })
    }

    fn of_columns(columns: &[&str]) -> Option<Self> {
        let has = |wanted: &[&str]| wanted.iter().all(|column| columns.contains(column));
        Some(if has(&["Task ID", "Stream ID", "Name"]) {
            Self::KernelDetails
        } else if has(&["Name", "Type", "Start Time(us)"]) || has(&["Name", "Type", "Task ID"]) {
            Self::KernelsWithoutStreams
        } else if has(&["Name", "Input Shapes", "Call Stack"]) {
            Self::Sums("operator_details.csv")
        } else if has(&["Step", "Computing"]) {
            Self::Sums("step_trace_time.csv")
        } else if has(&["OP Type", "Core Type", "Count"]) {
            Self::Sums("op_statistic.csv")
        } else if has(&["API Name", "Time(us)", "Count"]) {
            Self::Sums("api_statistic.csv")
        } else if has(&["Component", "Timestamp(us)"]) {
            Self::MemoryRecord
        } else if has(&["Name", "Allocation Time(us)"]) {
            Self::OperatorMemory
        } else {
            return None;
        })
    }
}

impl Reader for TableReader {
    fn recognizes(&self, head: &[u8]) -> bool {
        TableKind::of(head).is_some()
    }

    fn read(&self, mut source: Source<'_>, options: &ReadOptions<'_>) -> Result<PartReading> {
        source.forget_lines();
        let mut reading = match TableKind::of(source.window()) {
            Some(TableKind::KernelDetails) => kernel_details::read(&mut source, options),
            Some(TableKind::MemoryRecord) => memory_record::read(&mut source),
            Some(TableKind::KernelsWithoutStreams) => Err(Error::MissingColumn {
                file: "kernel_details.csv",
                column: "Stream ID",
                instead: "trace_view.json, or the folder that it is in",
            }),
            Some(TableKind::OperatorMemory) => Err(Error::BlocksWithoutCurve),
            Some(TableKind::Sums(file)) => Err(Error::SumsWithoutTimes { file }),
            None => Err(source.not_json(0, "expected value")),
        }?;
        if source.damage().is_some() {
            reading.repairs.add(Repair::DamagedCompression, 1);
        }
        Ok(reading)
    }
}

/// A CSV file being read, with the names of its columns.
struct Table<R> {
    rows: CsvReader<Utf8<R>>,
    columns: StringRecord,
    /// Whether numbers have a comma before their decimals, as where semicolons separate columns.
    has_decimal_commas: bool,
    /// The last byte that was read.
    last: Rc<Cell<Option<u8>>>,
}

impl<R: Read> Table<R> {
    fn open(input: R) -> Result<Self> {
        let (input, head) = Utf8::open(input).map_err(unwrapped)?;
        let last = input.last();
        let known = TableKind::of_text(head.trim_start_matches('\u{feff}'));
        let separator = known.map_or(b',', |(_, separator)| separator);
        let mut rows = ReaderBuilder::new()
            .flexible(true)
            .delimiter(separator)
            .from_reader(input);
        let columns = rows.headers().map_err(error_of)?.clone();
        Ok(Self {
            rows,
            columns,
            has_decimal_commas: separator == b';',
            last,
        })
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

    /// Calls `each` with every row. Returns whether the file is cut off: a last row that lacks columns
    /// is left out then.
    fn each_row(mut self, mut each: impl FnMut(Fields<'_>) -> Result<()>) -> Result<Repairs> {
        let mut repairs = Repairs::default();
        let [mut before, mut row, mut next] = [(); 3].map(|()| StringRecord::new());
        let mut has_row = self.rows.read_record(&mut row).map_err(error_of)?;
        while has_row {
            has_row = self.rows.read_record(&mut next).map_err(error_of)?;
            if !has_row && self.is_cut(&before, &row) {
                repairs.add(Repair::Truncated, 1);
                if row.len() < self.columns.len() {
                    break;
                }
            }
            each(Fields {
                record: &row,
                has_decimal_commas: self.has_decimal_commas,
            })?;
            std::mem::swap(&mut before, &mut row);
            std::mem::swap(&mut row, &mut next);
        }
        Ok(repairs)
    }

    /// Returns whether the file seems to be cut off in its last row. Profilers end each line, but
    /// other programs may not; their last field is a whole one if the row before has it too.
    fn is_cut(&self, before: &StringRecord, last: &StringRecord) -> bool {
        let is_whole_line = matches!(self.last.get(), Some(b'\n' | b'\r'));
        let last_field = |record: &StringRecord| record.iter().next_back().map(str::to_owned);
        let is_whole = last.len() >= self.columns.len() && last_field(before) == last_field(last);
        !is_whole_line && !is_whole
    }
}

/// The fields of one row.
#[derive(Clone, Copy)]
struct Fields<'a> {
    record: &'a StringRecord,
    has_decimal_commas: bool,
}

impl<'a> Fields<'a> {
    /// Returns the text in a column, without the tab that keeps spreadsheets from rounding it.
    fn text(self, column: usize) -> &'a str {
        self.record.get(column).unwrap_or_default().trim()
    }

    /// Returns the text of a number in a column, with a point before its decimals.
    fn number(self, column: usize) -> Cow<'a, str> {
        let text = self.text(column);
        if self.has_decimal_commas && text.contains(',') {
            Cow::Owned(text.replacen(',', ".", 1))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Returns a time in microseconds as nanoseconds.
    fn nanoseconds(self, column: usize) -> Option<i64> {
        crate::chrome::nanoseconds_of(&self.number(column))
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
                Some(TableKind::Sums("operator_details.csv")),
            ),
            (
                "Device_id,Step,Computing,Communication(",
                Some(TableKind::Sums("step_trace_time.csv")),
            ),
            (
                "Name,Type,Accelerator Core,Start Time(us),Dur",
                Some(TableKind::KernelsWithoutStreams),
            ),
            (
                "Name,Size(KB),Allocation Time(us),Release Ti",
                Some(TableKind::OperatorMemory),
            ),
            (
                "Step Id;Model ID;\"Task ID\";Stream ID;Name;Ty",
                Some(TableKind::KernelDetails),
            ),
            (
                "Component\tTimestamp(us)\tTotal Res",
                Some(TableKind::MemoryRecord),
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
