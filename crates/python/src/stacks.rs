//! The stacks of a profile as files: torch's lines, a flame graph, and what speedscope opens.

use std::path::PathBuf;

use mindprof_formats::{stack_metric, write_folded_with_short, write_speedscope_file};
use mindprof_report::write_flamegraph_file;
use mindprof_trace::write_file;
use pyo3::prelude::*;

use crate::enter::Enter;
use crate::profile::Profile;

/// Writes the stacks of `profile`, a line for each, with what was spent in them.
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

/// Writes the paths of `profile`, a line for each: who called, then the scopes, then the event.
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

/// Draws the stacks of `profile` as a flame graph.
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

/// Writes `profile` as a file that speedscope opens.
#[pyfunction]
pub(crate) fn write_speedscope(
    py: Python<'_>,
    profile: PyRef<'_, Profile>,
    path: PathBuf,
) -> PyResult<()> {
    let profile = &*profile;
    py.enter(move || write_speedscope_file(&profile.analyzed().analysis, &path))
}
