//! Exports of the stacks of a profile: torch's stack lines, a flame graph, and a speedscope file.

use std::path::PathBuf;

use mindprof_formats::{stack_metric, write_folded_with_short, write_speedscope_file};
use mindprof_report::write_flamegraph_file;
use mindprof_trace::write_file;
use pyo3::prelude::*;

use crate::enter::Enter;
use crate::profile::Profile;

/// Writes the stacks of `profile` to a file, one line per stack with the value of `metric`.
#[pyfunction]
pub(crate) fn write_stacks(
    py: Python<'_>,
    profile: PyRef<'_, Profile>,
    path: PathBuf,
    metric: String,
) -> PyResult<()> {
    let profile = &*profile;
    py.enter(move || {
        let (metric, analysis) = (stack_metric(&metric)?, &profile.analyzed().analysis);
        write_file(&path, |out| write_folded_with_short(analysis, metric, out))
    })
}

/// Writes the call paths of `profile` to a file, one line each: Python frames, scopes, event.
#[pyfunction]
pub(crate) fn write_paths(
    py: Python<'_>,
    profile: PyRef<'_, Profile>,
    path: PathBuf,
    metric: String,
) -> PyResult<()> {
    let profile = &*profile;
    py.enter(move || {
        let (metric, analysis) = (stack_metric(&metric)?, &profile.analyzed().analysis);
        write_file(&path, |out| {
            mindprof_formats::write_paths(analysis, metric, out).map(drop)
        })
    })
}

/// Draws the stacks of `profile` as a flame graph into a file.
#[pyfunction]
pub(crate) fn write_flamegraph(
    py: Python<'_>,
    profile: PyRef<'_, Profile>,
    path: PathBuf,
    metric: String,
) -> PyResult<()> {
    let profile = &*profile;
    py.enter(move || {
        let metric = stack_metric(&metric)?;
        write_flamegraph_file(&profile.analyzed().analysis, metric, &path)
    })
}

/// Writes `profile` as a speedscope file.
#[pyfunction]
pub(crate) fn write_speedscope(
    py: Python<'_>,
    profile: PyRef<'_, Profile>,
    path: PathBuf,
) -> PyResult<()> {
    let profile = &*profile;
    py.enter(move || write_speedscope_file(&profile.analyzed().analysis, &path))
}
