//! The report of a profile as an HTML page, and its overview for notebooks.

use std::path::PathBuf;

use mindprof_answers::SourceFile;
use mindprof_report::{Compared, ReportOptions, overview_frame, write_report_file};
use pyo3::prelude::*;

use crate::enter::Enter;
use crate::error::Error;
use crate::profile::Profile;

/// Writes the report of `profile`. `compare` is an earlier profile with its name, `sources` are the
/// names and lines of source files.
#[pyfunction]
pub(crate) fn write_report(
    py: Python<'_>,
    profile: PyRef<'_, Profile>,
    path: PathBuf,
    title: String,
    compare: Option<(PyRef<'_, Profile>, String)>,
    sources: Vec<(String, Vec<String>)>,
) -> PyResult<()> {
    let profile = &*profile;
    let compare = compare.as_ref().map(|(other, name)| (&**other, name));
    let sources = sources.into_iter();
    let sources = sources.map(|(file, lines)| SourceFile {
        file,
        functions: Vec::new(),
        lines,
    });
    let sources: Vec<SourceFile> = sources.collect();
    py.enter(move || {
        let options = ReportOptions {
            title,
            compare: compare.map(|(other, name)| Compared {
                analysis: &other.analyzed().analysis,
                name,
            }),
            sources,
            ..ReportOptions::default()
        };
        write_report_file(&profile.analyzed().analysis, &options, &path)
    })
}

/// Returns the overview of the report of `profile` as HTML for a notebook.
#[pyfunction]
pub(crate) fn report_overview(py: Python<'_>, profile: PyRef<'_, Profile>) -> PyResult<String> {
    let profile = &*profile;
    py.enter(|| Ok::<_, Error>(overview_frame(&profile.analyzed().analysis)))
}
