//! Columns as Apache Arrow's: numbers are handed over without a copy, texts stay numbered.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{Field, Schema};

use crate::columns::{Column, Values};

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
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

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
