//! Writes profiles as traces and as execution traces, with metadata from Python.

use std::path::PathBuf;
use std::sync::Arc;

use mindprof_formats::summarize_bytes;
use mindprof_model::{Category, Metadata};
use mindprof_pytorch::has_forward_arrows;
use mindprof_trace::{
    ExecutionTraceOptions, TraceOptions, write_execution_trace_file, write_named_trace_file,
    write_trace_with,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::enter::Enter;
use crate::error::Error;
use crate::profile::Profile;

/// The categories that a filter of activity types can exclude, by type name.
const FILTERED: [(&str, Category); 3] = [
    ("CPU_OP", Category::Operator),
    ("USER_ANNOTATION", Category::Annotation),
    ("PYTHON_FUNCTION", Category::PythonFunction),
];

/// Writes `profile` as a trace. `metadata` are pairs of a key and a JSON text. The trace is in
/// Perfetto's format if `path` has its extension, else a Chrome trace. It has no `forward_arrows` if
/// they are switched off in torch, either.
#[pyfunction]
#[pyo3(signature = (profile, path, *, metadata, activity_types, forward_arrows = true))]
pub(crate) fn write_chrome_trace(
    py: Python<'_>,
    profile: PyRef<'_, Profile>,
    path: PathBuf,
    metadata: Vec<(Bound<'_, PyString>, Bound<'_, PyString>)>,
    activity_types: Option<Vec<String>>,
    forward_arrows: bool,
) -> PyResult<()> {
    let options = TraceOptions {
        metadata: collect(&metadata),
        leave_out: activity_types.map_or_else(Vec::new, |kept| left_out(&kept)),
        leave_out_forward_arrows: !(forward_arrows && has_forward_arrows()),
        ..TraceOptions::default()
    };
    let profile = &*profile;
    py.enter(move || write_named_trace_file(profile.analyzed().analysis.profile(), &options, &path))
}

/// Sums up a profile as one rank of a job, and returns the bytes of the summary. They are those of
/// the trace that the profile would be written as, with the name `name`.
#[pyfunction]
pub(crate) fn summarize_profile<'py>(
    py: Python<'py>,
    profile: PyRef<'_, Profile>,
    name: String,
    metadata: Vec<(Bound<'_, PyString>, Bound<'_, PyString>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let options = TraceOptions {
        metadata: collect(&metadata),
        ..TraceOptions::default()
    };
    let profile = &*profile;
    let bytes = py.enter(move || {
        let mut trace = Vec::new();
        let recorded = profile.analyzed().analysis.profile();
        write_trace_with(recorded, &name, &options, &mut trace)?;
        Ok::<_, Error>(summarize_bytes(&trace, &name)?.to_bytes())
    })?;
    Ok(PyBytes::new(py, &bytes))
}

#[pymethods]
impl Profile {
    /// Writes the profile as a trace, as torch's results do.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let options = TraceOptions::default();
        py.enter(move || {
            write_named_trace_file(self.analyzed().analysis.profile(), &options, &path)
        })
    }
}

/// Writes `profile`, recorded with results, as an execution trace, or an empty one if it is None.
#[pyfunction]
#[pyo3(signature = (profile, path, *, time, start_ms, finish_ms))]
pub(crate) fn write_execution_trace(
    py: Python<'_>,
    profile: Option<PyRef<'_, Profile>>,
    path: PathBuf,
    time: String,
    start_ms: u64,
    finish_ms: u64,
) -> PyResult<()> {
    let options = ExecutionTraceOptions {
        process: std::process::id(),
        time,
        start_ms,
        finish_ms,
    };
    let analyzed = profile.map(|profile| Arc::clone(profile.analyzed()));
    py.enter(move || {
        let profile = analyzed.as_ref().map(|held| held.analysis.profile());
        write_execution_trace_file(profile, &options, &path)
    })
}

/// Extracts strings. Lone surrogates are not valid UTF-8 and become replacement characters.
fn collect(pairs: &[(Bound<'_, PyString>, Bound<'_, PyString>)]) -> Metadata {
    let mut metadata = Metadata::default();
    for (key, value) in pairs {
        metadata.set(key.to_string_lossy(), value.to_string_lossy());
    }
    metadata
}

fn left_out(kept: &[String]) -> Vec<Category> {
    let is_left_out = |name: &str| kept.iter().all(|kept| kept != name);
    let filtered = FILTERED.iter().filter(|(name, _)| is_left_out(name));
    filtered.map(|(_, category)| *category).collect()
}
