//! Columns as Apache Arrow arrays: a record batch for Python, and an Arrow IPC file for everyone else.
//!
//! Numbers are handed over without a copy, and texts stay dictionary-encoded.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array,
    ListArray, RecordBatch, StringArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, Field, Schema};

use arrow_ipc::writer::FileWriter;
use mindprof_analyze::Analysis;

use crate::columns::{Column, Values, event_columns};
use crate::error::Result;

/// Writes the visible events and memory records of a profile as an Arrow IPC file. Returns the
/// number of rows.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub(crate) fn write_arrow(analysis: &Analysis, out: impl Write) -> Result<u64> {
    let batch = record_batch(event_columns(analysis));
    let write = || {
        let mut file = FileWriter::try_new_buffered(out, &batch.schema())?;
        file.write(&batch)?;
        file.finish()
    };
    write().map_err(|error| match error {
        // The I/O error itself, so that callers can tell a closed pipe from a full disk.
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    })?;
    Ok(batch.num_rows() as u64)
}

/// Returns columns as an Arrow record batch.
///
/// # Panics
/// Panics if the columns differ in length.
pub fn record_batch(columns: Vec<Column>) -> RecordBatch {
    let mut fields = Vec::with_capacity(columns.len());
    let mut arrays = Vec::with_capacity(columns.len());
    for column in columns {
        let is_nullable = column.known.is_some();
        let array = array(column.values, column.known.map(NullBuffer::from));
        fields.push(Field::new(
            column.name,
            array.data_type().clone(),
            is_nullable,
        ));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .expect("every column has one value per row")
}

fn array(values: Values, known: Option<NullBuffer>) -> ArrayRef {
    match values {
        Values::Text { numbers, texts } => {
            let numbers = Int32Array::new(numbers.into(), known);
            let texts = Arc::new(StringArray::from(texts));
            Arc::new(DictionaryArray::<Int32Type>::new(numbers, texts))
        }
        Values::Int(values) => Arc::new(Int64Array::new(values.into(), known)),
        Values::Float(values) => Arc::new(Float64Array::new(values.into(), known)),
        Values::Bool(values) => Arc::new(BooleanArray::new(BooleanBuffer::from(values), known)),
        Values::TextLists {
            numbers,
            lists,
            texts,
        } => {
            let lists: Vec<&[i32]> = picked(&numbers, &lists);
            let flat = Int32Array::from(lists.concat());
            let texts = Arc::new(StringArray::from(texts));
            let flat = DictionaryArray::<Int32Type>::new(flat, texts);
            list(lists.into_iter().map(<[i32]>::len), Arc::new(flat), known)
        }
        Values::IntLists { numbers, lists } => {
            let lists: Vec<&[Vec<i64>]> = picked(&numbers, &lists);
            let inner: Vec<&Vec<i64>> = lists.iter().copied().flatten().collect();
            let flat = Int64Array::from_iter_values(inner.iter().copied().flatten().copied());
            let inner = list(inner.into_iter().map(Vec::len), Arc::new(flat), None);
            list(lists.into_iter().map(<[_]>::len), inner, known)
        }
    }
}

fn picked<'a, T>(numbers: &[i32], lists: &'a [Vec<T>]) -> Vec<&'a [T]> {
    let lists = |&number: &i32| lists[number as usize].as_slice();
    numbers.iter().map(lists).collect()
}

fn list(
    lengths: impl Iterator<Item = usize>,
    items: ArrayRef,
    known: Option<NullBuffer>,
) -> ArrayRef {
    let field = Field::new("item", items.data_type().clone(), true);
    let offsets = OffsetBuffer::from_lengths(lengths);
    Arc::new(ListArray::new(Arc::new(field), offsets, items, known))
}

#[cfg(test)]
mod tests {
    use arrow_ipc::reader::FileReader;
    use mindprof_model::Timeline;

    use super::*;
    use crate::columns::text_values;
    use crate::error::Error;

    #[test]
    fn a_file_holds_the_batch() {
        let analysis = Analysis::build(Timeline::draw(|time| {
            time.annotation("step", |time| time.op("mm", 1500));
        }));
        let mut out = Vec::new();
        assert_eq!(write_arrow(&analysis, &mut out).unwrap(), 2);
        let read = FileReader::try_new(io::Cursor::new(out), None).unwrap();
        let read: Vec<RecordBatch> = read.map(std::result::Result::unwrap).collect();
        assert_eq!(read, [record_batch(event_columns(&analysis))]);
    }

    #[test]
    fn an_error_of_the_system_stays_one() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let analysis = Analysis::build(Timeline::draw(|time| time.op("mm", 1500)));
        let error = write_arrow(&analysis, Full).unwrap_err();
        assert!(matches!(error, Error::Io(error) if error.kind() == io::ErrorKind::BrokenPipe));
    }

    #[test]
    fn values_that_are_not_known_are_null() {
        let columns = vec![
            Column {
                name: "key".into(),
                values: text_values(["a", "b", "a"]),
                known: None,
            },
            Column {
                name: "flops".into(),
                values: Values::Int(vec![1, 0, 3]),
                known: Some(vec![true, false, true]),
            },
        ];
        let batch = record_batch(columns);
        assert_eq!((batch.num_rows(), batch.column(1).null_count()), (3, 1));
        let schema = batch.schema();
        assert!(schema.field(1).is_nullable() && !schema.field(0).is_nullable());
        let keys: &DictionaryArray<Int32Type> = batch.column(0).as_any().downcast_ref().unwrap();
        assert_eq!(keys.values().len(), 2);
    }
}
