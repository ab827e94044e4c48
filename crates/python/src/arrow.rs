//! Passes columns to other libraries through Arrow's C data interface, without copying.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchIterator, StructArray};
use mindprof_formats::{
    Column, Values, int_list_values, record_batch, text_list_values, text_values,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A table of columns that Arrow libraries can import without copying.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct ArrowTable {
    batch: RecordBatch,
}

impl ArrowTable {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self {
            batch: record_batch(columns),
        }
    }
}

#[pymethods]
impl ArrowTable {
    /// Builds a table from columns. A column is a name, a kind (`text`, `int`, `float`, `bool`,
    /// `texts` for lists of strings, `shapes` for lists of lists of integers) and a list of values,
    /// which may be None.
    #[staticmethod]
    fn of_columns(columns: Vec<(String, String, Vec<Bound<'_, PyAny>>)>) -> PyResult<Self> {
        let items = columns.first().map_or(0, |(_, _, values)| values.len());
        let columns: PyResult<Vec<Column>> = columns
            .into_iter()
            .map(|(name, kind, values)| given_column(name, &kind, &values))
            .collect();
        let columns = columns?;
        if columns.iter().any(|column| column.values.len() != items) {
            return Err(PyValueError::new_err("expected columns of equal length"));
        }
        Ok(Self::new(columns))
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    /// The consumer's requested schema is ignored, which the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let array = FFI_ArrowArray::new(&StructArray::from(self.batch.clone()).to_data());
        let array = PyCapsule::new_with_value(py, array, ARRAY)?;
        PyTuple::new(py, [self.__arrow_c_schema__(py)?, array])
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = [Ok(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches, Arc::clone(self.batch.schema_ref()));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, STREAM)
    }
}

fn refused(error: impl ToString) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

fn given_column(name: String, kind: &str, values: &[Bound<'_, PyAny>]) -> PyResult<Column> {
    let is_known: Vec<bool> = values.iter().map(|value| !value.is_none()).collect();
    let values = match kind {
        "text" => {
            let texts: PyResult<Vec<Option<String>>> =
                values.iter().map(PyAnyMethods::extract).collect();
            text_values(
                texts?
                    .iter()
                    .map(|text| text.as_deref().unwrap_or_default()),
            )
        }
        "int" => Values::Int(known_or_zero(values)?),
        "float" => Values::Float(known_or_zero(values)?),
        "bool" => Values::Bool(known_or_zero(values)?),
        "texts" => text_list_values(known_or_zero::<Vec<String>>(values)?),
        "shapes" => int_list_values(known_or_zero::<Vec<Vec<i64>>>(values)?),
        _ => {
            return Err(PyValueError::new_err(format!(
                "unknown kind of column `{kind}`"
            )));
        }
    };
    Ok(Column {
        name,
        values,
        known: is_known.contains(&false).then_some(is_known),
    })
}

fn known_or_zero<T>(values: &[Bound<'_, PyAny>]) -> PyResult<Vec<T>>
where
    T: Default + for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
{
    let values = values.iter().map(PyAnyMethods::extract::<Option<T>>);
    values.map(|value| Ok(value?.unwrap_or_default())).collect()
}
