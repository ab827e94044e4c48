//! Summaries of the ranks of a job, for Python.

use std::path::PathBuf;

use mindprof_formats::{summarize_bytes, summarize_file};
use mindprof_ranks::{JobAnswer, Ranks};
use mindprof_report::{RanksLayout, ranks_text};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::enter::Enter;
use crate::error::Error;

/// Sums up a trace, and returns the bytes of the summary.
#[pyfunction]
pub(crate) fn summarize_rank(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = py.enter_alone(|| Ok::<_, Error>(summarize_file(&path)?.to_bytes()))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Sums up the bytes of a trace, and returns the bytes of the summary. Error messages call it `name`.
#[pyfunction]
pub(crate) fn summarize_rank_bytes<'py>(
    py: Python<'py>,
    trace: &[u8],
    name: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = py.enter_alone(|| Ok::<_, Error>(summarize_bytes(trace, name)?.to_bytes()))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Merges the bytes of summaries.
#[pyfunction]
pub(crate) fn merge_ranks(py: Python<'_>, parts: Vec<Vec<u8>>) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = py.enter_alone(|| {
        let parts = parts.iter().map(|part| read(part));
        let parts: Vec<Ranks> = parts.collect::<Result<_, _>>()?;
        Ok::<_, Error>(Ranks::merge(parts).to_bytes())
    })?;
    Ok(PyBytes::new(py, &bytes))
}

/// Returns the number of ranks in the bytes of a summary.
#[pyfunction]
pub(crate) fn count_ranks(py: Python<'_>, summary: &[u8]) -> PyResult<usize> {
    py.enter_alone(|| Ok::<_, Error>(read(summary)?.summaries().len()))
}

/// Returns the answers about the ranks in the bytes of a summary, as JSON.
#[pyfunction]
pub(crate) fn ask_ranks(py: Python<'_>, summary: &[u8]) -> PyResult<String> {
    py.enter_alone(|| Ok::<_, Error>(JobAnswer::build(&read(summary)?).json()))
}

/// Returns the answers about the ranks in the bytes of a summary, as text.
#[pyfunction]
#[pyo3(signature = (summary, rows, width = None))]
pub(crate) fn tell_ranks(
    py: Python<'_>,
    summary: &[u8],
    rows: usize,
    width: Option<usize>,
) -> PyResult<String> {
    if rows == 0 {
        return Err(PyValueError::new_err("rows must be at least one"));
    }
    let layout = RanksLayout { rows, width };
    py.enter_alone(|| Ok::<_, Error>(ranks_text(&JobAnswer::build(&read(summary)?), layout)))
}

fn read(bytes: &[u8]) -> Result<Ranks, mindprof_formats::Error> {
    Ok(Ranks::from_bytes(bytes)?)
}
