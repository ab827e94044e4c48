//! Writes the columns of events as an Apache Parquet file.

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use mindprof_analyze::Analysis;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::columns::{Column, Values, event_columns};
use crate::error::Result;
use mindprof_trace::write_file;

/// The number of rows in a row group. Readers load a group at a time; this many take some megabytes.
const GROUP: usize = 1 << 20;

/// Writes the visible events and memory records of a profile as Parquet. Returns the number of rows.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub(crate) fn write_parquet(analysis: &Analysis, mut out: impl Write) -> Result<u64> {
    let columns = event_columns(analysis);
    let bytes = encode(&columns).map_err(io::Error::other)?;
    out.write_all(&bytes)?;
    Ok(columns.first().map_or(0, |column| column.values.len()) as u64)
}

/// Writes the visible events and memory records of a profile to a Parquet file.
///
/// # Errors
/// Fails if the file cannot be written. The error names the file.
pub fn write_parquet_file(analysis: &Analysis, path: &Path) -> Result<()> {
    write_file(path, |out| write_parquet(analysis, out).map(drop))
}

/// Encodes columns in memory, since the file is small compared with the columns.
fn encode(columns: &[Column]) -> std::result::Result<Vec<u8>, ParquetError> {
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema(columns)?, Arc::new(properties.build()))?;
    let rows = columns.first().map_or(0, |column| column.values.len());
    for begin in (0..rows).step_by(GROUP) {
        let range = begin..rows.min(begin + GROUP);
        let mut group = writer.next_row_group()?;
        for column in columns {
            let mut sink = group.next_column()?.expect("the schema has all columns");
            write_column(&mut sink, column, range.clone())?;
            sink.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(bytes)
}

fn schema(columns: &[Column]) -> std::result::Result<Arc<Type>, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical, depth) = match column.values {
            Values::Text { .. } => (Physical::BYTE_ARRAY, Some(LogicalType::String), 0),
            Values::Int(_) => (Physical::INT64, None, 0),
            Values::Float(_) => (Physical::DOUBLE, None, 0),
            Values::Bool(_) => (Physical::BOOLEAN, None, 0),
            Values::TextLists { .. } => (Physical::BYTE_ARRAY, Some(LogicalType::String), 1),
            Values::IntLists { .. } => (Physical::INT64, None, 2),
        };
        let repetition = match column.known {
            Some(_) => Repetition::OPTIONAL,
            None => Repetition::REQUIRED,
        };
        let name = if depth == 0 { &column.name } else { "element" };
        let mut field = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(if depth == 0 {
                repetition
            } else {
                Repetition::REQUIRED
            })
            .build()?;
        for level in (0..depth).rev() {
            let name = if level == 0 { &column.name } else { "element" };
            field = list_of(name, field)?;
        }
        Ok::<_, ParquetError>(Arc::new(field))
    };
    let fields: std::result::Result<_, _> = columns.iter().map(field).collect();
    let schema = Type::group_type_builder("events").with_fields(fields?);
    schema.build().map(Arc::new)
}

/// Returns the type of a list in the three-level structure that Parquet prescribes.
fn list_of(name: &str, element: Type) -> std::result::Result<Type, ParquetError> {
    let list = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    Type::group_type_builder(name)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(list)])
        .build()
}

fn write_column(
    sink: &mut SerializedColumnWriter<'_>,
    column: &Column,
    range: Range<usize>,
) -> std::result::Result<(), ParquetError> {
    let known = column.known.as_ref().map(|known| &known[range.clone()]);
    match &column.values {
        Values::Text { numbers, texts } => {
            let texts: Vec<ByteArray> = texts.iter().map(|text| text.as_str().into()).collect();
            let values = numbers[range].iter();
            let values: Vec<ByteArray> = values
                .map(|&number| texts[number as usize].clone())
                .collect();
            write_values::<ByteArrayType>(sink, &values, known)
        }
        Values::Int(values) => write_values::<Int64Type>(sink, &values[range], known),
        Values::Float(values) => write_values::<DoubleType>(sink, &values[range], known),
        Values::Bool(values) => write_values::<BoolType>(sink, &values[range], known),
        Values::TextLists {
            numbers,
            lists,
            texts,
        } => {
            let texts: Vec<ByteArray> = texts.iter().map(|text| text.as_str().into()).collect();
            let mut flat = Flat::default();
            for &number in &numbers[range] {
                let list = &lists[number as usize];
                flat.list(0, 0, list, |flat, repetition, &text| {
                    flat.value(texts[text as usize].clone(), repetition, 1);
                });
            }
            flat.write::<ByteArrayType>(sink)
        }
        Values::IntLists { numbers, lists } => {
            let mut flat = Flat::default();
            for &number in &numbers[range] {
                let outer = &lists[number as usize];
                flat.list(0, 0, outer, |flat, repetition, inner| {
                    flat.list(1, repetition, inner, |flat, repetition, &dim| {
                        flat.value(dim, repetition, 2);
                    });
                });
            }
            flat.write::<Int64Type>(sink)
        }
    }
}

/// Lists in the encoding of Parquet: the innermost values in a row, and two levels for each.
///
/// ```text
/// rows          [[2, 3], []]    []      [[4]]
/// values        2  3                    4
/// definition    2  2  1         0       2        how many lists have an element here
/// repetition    0  2  1         0       0        which list continues; 0 starts a row
/// ```
struct Flat<T> {
    values: Vec<T>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

impl<T> Default for Flat<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
        }
    }
}

impl<T> Flat<T> {
    /// Adds a list at a depth. `repetition` is the repetition level of its first element.
    fn list<E>(
        &mut self,
        depth: i16,
        repetition: i16,
        list: &[E],
        add: impl Fn(&mut Self, i16, &E),
    ) {
        if list.is_empty() {
            self.definitions.push(depth);
            self.repetitions.push(repetition);
        }
        for (index, element) in list.iter().enumerate() {
            let repetition = if index == 0 { repetition } else { depth + 1 };
            add(self, repetition, element);
        }
    }

    fn value(&mut self, value: T, repetition: i16, definition: i16) {
        self.values.push(value);
        self.definitions.push(definition);
        self.repetitions.push(repetition);
    }

    fn write<D: DataType<T = T>>(
        &self,
        sink: &mut SerializedColumnWriter<'_>,
    ) -> std::result::Result<(), ParquetError> {
        let writer = sink.typed::<D>();
        writer.write_batch(
            &self.values,
            Some(&self.definitions),
            Some(&self.repetitions),
        )?;
        Ok(())
    }
}

/// Writes plain values. Parquet takes the known values alone, and a definition level for every row.
fn write_values<T: DataType>(
    sink: &mut SerializedColumnWriter<'_>,
    values: &[T::T],
    known: Option<&[bool]>,
) -> std::result::Result<(), ParquetError> {
    let writer = sink.typed::<T>();
    match known {
        None => writer.write_batch(values, None, None)?,
        Some(known) => {
            let pairs = values.iter().zip(known);
            let kept: Vec<T::T> = pairs
                .filter(|(_, known)| **known)
                .map(|(value, _)| value.clone())
                .collect();
            let levels: Vec<i16> = known.iter().map(|&known| i16::from(known)).collect();
            writer.write_batch(&kept, Some(&levels), None)?
        }
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let profile = Timeline::draw(|time| {
            time.annotation("schön", |time| {
                time.idle(1000);
                time.op("aten::mm", 2500);
            });
        });
        let mut out = Vec::new();
        write_parquet(&Analysis::build(profile), &mut out).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap())
            .collect();
        let found: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.get_string(0).unwrap().as_str(),
                    row.get_double(2).unwrap(),
                )
            })
            .collect();
        assert_eq!(found, [("schön", 3.5), ("aten::mm", 2.5)]);
    }

    #[test]
    fn a_profile_without_events_has_no_rows() {
        let mut out = Vec::new();
        write_parquet(&Analysis::build(Timeline::draw(|_| {})), &mut out).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        assert_eq!(reader.get_row_iter(None).unwrap().count(), 0);
    }

    #[test]
    fn values_that_are_not_known_are_left_out() {
        let columns = [Column {
            name: "flops".into(),
            values: Values::Int(vec![1, 0, 3]),
            known: Some(vec![true, false, true]),
        }];
        let bytes = encode(&columns).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        let found: Vec<_> = rows.map(|row| row.unwrap().get_long(0).ok()).collect();
        assert_eq!(found, [Some(1), None, Some(3)]);
    }
}
