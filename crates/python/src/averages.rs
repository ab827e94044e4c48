//! Rows as Python sees them: torch's names and microseconds over the engine's averages.

use std::sync::Arc;

use mindprof_analyze::{Analysis, Average, Averages};
use mindprof_model::{Category, Input, InputsIter, Nanos};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// One row of `key_averages()`.
#[pyclass(frozen, module = "mindprof")]
#[derive(Clone, Debug)]
pub(crate) struct FunctionEventAvg {
    pub(crate) row: Average,
    analysis: Option<Arc<Analysis>>,
}

impl FunctionEventAvg {
    pub(crate) fn new(row: Average, analysis: Arc<Analysis>) -> Self {
        Self {
            row,
            analysis: Some(analysis),
        }
    }
}

#[pymethods]
impl FunctionEventAvg {
    /// The name that the events share.
    #[getter]
    fn key(&self) -> &str {
        &self.row.key
    }

    /// How many events there are.
    #[getter]
    fn count(&self) -> u64 {
        self.row.sums.count
    }

    /// Time on the host in microseconds, children included.
    #[getter]
    fn cpu_time_total(&self) -> f64 {
        microseconds(self.row.sums.cpu_total)
    }

    /// Time on the host in microseconds, without the children.
    #[getter]
    fn self_cpu_time_total(&self) -> f64 {
        microseconds(self.row.sums.self_cpu_total)
    }

    /// Time on the host per event in microseconds.
    #[getter]
    fn cpu_time(&self) -> f64 {
        match self.row.sums.count {
            0 => 0.0,
            count => microseconds(self.row.sums.cpu_total) / count as f64,
        }
    }

    /// Whether a user named the range.
    #[getter]
    fn is_user_annotation(&self) -> bool {
        matches!(
            self.row.category,
            Category::Annotation | Category::DeviceAnnotation
        )
    }

    /// The sizes of the tensors that the events were given, or "" when rows are not told apart by them.
    #[getter]
    fn input_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match (self.row.inputs, &self.analysis) {
            (Some(inputs), Some(analysis)) => {
                shapes(py, analysis.profile().inputs().inputs(inputs)).map(Bound::into_any)
            }
            _ => Ok("".into_pyobject(py)?.into_any()),
        }
    }

    fn __repr__(&self) -> String {
        let text = |time| mindprof_formats::time_text(time, None);
        format!(
            "<FunctionEventAvg key={} self_cpu_time={} cpu_time={} count={}>",
            self.row.key,
            text(self.self_cpu_time_total()),
            text(self.cpu_time()),
            self.row.sums.count
        )
    }
}

/// Returns the sum of the rows' own time in microseconds.
#[pyfunction]
pub(crate) fn self_cpu_time_total(rows: Vec<PyRef<'_, FunctionEventAvg>>) -> f64 {
    microseconds(collect(&rows).self_cpu_total())
}

/// Returns one row that sums all others.
#[pyfunction]
pub(crate) fn total_average(rows: Vec<PyRef<'_, FunctionEventAvg>>) -> FunctionEventAvg {
    FunctionEventAvg {
        row: collect(&rows).total(),
        analysis: None,
    }
}

/// Takes the engine's rows out of Python's.
pub(crate) fn collect(rows: &[PyRef<'_, FunctionEventAvg>]) -> Averages {
    Averages {
        rows: rows.iter().map(|row| row.row.clone()).collect(),
    }
}

/// Returns whose rows these are; none if there is no row to ask.
pub(crate) fn analysis_of(rows: &[PyRef<'_, FunctionEventAvg>]) -> Option<Arc<Analysis>> {
    rows.iter().find_map(|row| row.analysis.clone())
}

fn microseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

fn shapes<'py>(py: Python<'py>, inputs: InputsIter<'_>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for input in inputs {
        match input {
            Input::Tensor { dims, .. } => list.append(dims)?,
            _ => list.append(PyList::empty(py))?,
        }
    }
    Ok(list)
}
