//! Summaries of the ranks of a job, for Python.

use std::path::PathBuf;

use mindprof_formats::{
    RankFiles, RankTrace, is_rank_archive, merge_rank_traces, summarize_bytes, summarize_file,
    write_rank_archive_file,
};
use mindprof_ranks::{JobAnswer, Ranks, StepGrid};
use mindprof_report::{RanksLayout, ranks_text, write_ranks_page_file};
use mindprof_trace::{TraceOptions, write_named_trace_file};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::enter::Enter;
use crate::error::Error;

/// Returns the traces and summaries in a folder and in the folders in it.
#[pyfunction]
pub(crate) fn list_rank_files(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
    py.enter_alone(|| Ok::<_, Error>(RankFiles::list(&folder)?.found))
}

/// Returns the traces and summaries among the paths of files below a folder.
#[pyfunction]
pub(crate) fn choose_rank_files(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    RankFiles::among(paths).found
}

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

/// Writes the page about the ranks in the bytes of a summary.
#[pyfunction]
pub(crate) fn write_ranks_html(py: Python<'_>, summary: &[u8], path: PathBuf) -> PyResult<()> {
    py.enter_alone(|| {
        let ranks = read(summary)?;
        let (answer, grid) = (JobAnswer::build(&ranks), StepGrid::build(&ranks));
        Ok::<_, Error>(write_ranks_page_file(&answer, &grid, &path)?)
    })
}

/// Writes the events of each rank as Parquet below a folder, and returns the files. Summaries come
/// in the order of the paths that they are of.
#[pyfunction]
pub(crate) fn write_ranks_parquet(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    summaries: Vec<Vec<u8>>,
    folder: PathBuf,
) -> PyResult<Vec<PathBuf>> {
    py.enter_alone(|| {
        let traces = rank_traces(&paths, &summaries)?;
        Ok::<_, Error>(mindprof_formats::write_ranks_parquet(&traces, &folder)?)
    })
}

/// Writes one trace of several ranks, with all times on the clock of the first. The name of the file
/// tells the format. Summaries come in the order of the paths that they are of.
#[pyfunction]
pub(crate) fn write_ranks_trace(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    summaries: Vec<Vec<u8>>,
    ranks: Option<Vec<u32>>,
    path: PathBuf,
) -> PyResult<()> {
    let mut traces = py.enter_alone(|| Ok::<_, Error>(rank_traces(&paths, &summaries)?))?;
    if let Some(ranks) = ranks {
        for rank in &ranks {
            if !traces.iter().any(|trace| trace.rank == Some(*rank)) {
                let message = format!("there is no trace of rank {rank}");
                return Err(PyValueError::new_err(message));
            }
        }
        traces.retain(|trace| trace.rank.is_some_and(|rank| ranks.contains(&rank)));
    }
    py.enter_alone(|| {
        if is_rank_archive(&path) {
            return Ok::<_, Error>(write_rank_archive_file(&traces, &path)?);
        }
        let profile = merge_rank_traces(&traces)?;
        Ok(write_named_trace_file(
            &profile,
            &TraceOptions::default(),
            &path,
        )?)
    })
}

fn rank_traces(
    paths: &[PathBuf],
    summaries: &[Vec<u8>],
) -> Result<Vec<RankTrace>, mindprof_formats::Error> {
    let parts = summaries.iter().map(|part| read(part));
    let parts: Vec<Ranks> = parts.collect::<Result<_, _>>()?;
    let job = Ranks::merge(parts.clone());
    let files = paths.iter().map(PathBuf::as_path).zip(&parts);
    Ok(RankTrace::of_files(&files.collect::<Vec<_>>(), &job))
}

fn read(bytes: &[u8]) -> Result<Ranks, mindprof_formats::Error> {
    Ok(Ranks::from_bytes(bytes)?)
}
