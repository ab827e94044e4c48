//! Columns as Apache Arrow's: numbers are handed over without a copy, texts stay numbered. Within a
//! process they are a batch, between processes a file of Arrow's own format (IPC).

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array,
    ListArray, RecordBatch, StringArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Schema};

use crate::columns::{Column, Values};

mod file;
mod flatbuffer;

pub use self::file::write_arrow;

/// Returns columns as a batch of Arrow's.
///
/// # Panics
/// When the columns differ in length.
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
        .expect("each column has a value for each item")
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
    use super::*;
    use crate::columns::text_values;

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
