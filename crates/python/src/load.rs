//! Loads trace files into profiles and reports the repairs that were needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mindprof_model::LossCause;
use mindprof_trace::{FileError, ReadOptions, Reading, read_trace_file_with, read_trace_from};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::analyzed::Analyzed;
use crate::enter::Enter;
use crate::error::Error;
use crate::profile::Profile;

/// A kind of repair: its name, how often it was applied, and a sentence about it.
type Repair = (&'static str, u64, String);

/// Reads a trace file. Returns the profile and the repairs.
#[pyfunction]
#[pyo3(signature = (path, max_bytes = None))]
pub(crate) fn load_profile(
    py: Python<'_>,
    path: PathBuf,
    max_bytes: Option<u64>,
) -> PyResult<(Profile, Vec<Repair>)> {
    let read = py.enter(move || {
        let reading = read_trace_file_with(&path, &options(max_bytes))?;
        Ok::<_, Error>(analyzed(reading))
    })?;
    Ok((Profile::from_analyzed(read.0), read.1))
}

/// Reads a trace from bytes. Returns the profile and the repairs. Error messages call it `name`.
#[pyfunction]
#[pyo3(signature = (bytes, name, max_bytes = None))]
pub(crate) fn load_bytes(
    py: Python<'_>,
    bytes: &[u8],
    name: &str,
    max_bytes: Option<u64>,
) -> PyResult<(Profile, Vec<Repair>)> {
    let read = py.enter(|| {
        let reading = read_trace_from(bytes, &options(max_bytes));
        let reading = reading.map_err(|error| error.at(Path::new(name)))?;
        Ok::<_, Error>(analyzed(reading))
    })?;
    Ok((Profile::from_analyzed(read.0), read.1))
}

fn options(max_bytes: Option<u64>) -> ReadOptions<'static> {
    ReadOptions {
        max_bytes,
        ..ReadOptions::default()
    }
}

fn analyzed(reading: Reading) -> (Arc<Analyzed>, Vec<Repair>) {
    let repairs = reading.repairs.iter();
    let repairs = repairs.map(|(repair, count, sentence)| (repair.key(), count, sentence));
    let repairs = repairs.collect();
    (Analyzed::new(reading.profile), repairs)
}

/// Returns the metadata of a profile as pairs of a key and a text, which is usually JSON.
#[pyfunction]
pub(crate) fn profile_metadata(profile: PyRef<'_, Profile>) -> Vec<(String, String)> {
    let analyzed = profile.analyzed();
    let metadata = analyzed.analysis.profile().metadata();
    let pairs = metadata.iter();
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Returns the number of lost events by a description of the cause.
#[pyfunction]
pub(crate) fn profile_loss<'py>(
    py: Python<'py>,
    profile: PyRef<'_, Profile>,
) -> PyResult<Bound<'py, PyDict>> {
    let loss = profile.analyzed().analysis.profile().loss();
    let counts = PyDict::new(py);
    for cause in LossCause::ALL.into_iter().filter(|&c| loss.count(c) > 0) {
        counts.set_item(cause.describe(), loss.count(cause))?;
    }
    Ok(counts)
}
