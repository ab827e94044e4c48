//! Exports of a profile's events to files and to Arrow.

use std::path::PathBuf;

use mindprof_formats::{
    event_columns, stack_metric, write_folded_file, write_parquet_file, write_speedscope_file,
};
use mindprof_report::write_flamegraph_file;
use mindprof_trace::write_event_list_file;
use pyo3::prelude::*;

use crate::arrow::ArrowTable;
use crate::enter::Enter;
use crate::error::Error;
use crate::events::Events;

#[pymethods]
impl Events {
    /// Writes the stacks of the events as folded lines, weighted by one of torch's metrics.
    fn write_folded(&self, py: Python<'_>, path: PathBuf, metric: String) -> PyResult<()> {
        py.enter(|| {
            let metric = stack_metric(&metric)?;
            write_folded_file(&self.analyzed.analysis, metric, &path)
        })
    }

    /// Writes a flame graph as SVG.
    fn write_flamegraph(&self, py: Python<'_>, path: PathBuf, metric: String) -> PyResult<()> {
        py.enter(|| {
            let metric = stack_metric(&metric)?;
            write_flamegraph_file(&self.analyzed.analysis, metric, &path)
        })
    }

    /// Writes a file for speedscope.
    fn write_speedscope(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.enter(|| write_speedscope_file(&self.analyzed.analysis, &path))
    }

    /// Writes the reduced trace that torch's event lists export.
    fn write_event_list(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.enter(|| write_event_list_file(&self.analyzed.analysis, &path))
    }

    /// Writes the events as Parquet.
    fn write_parquet(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.enter(|| write_parquet_file(&self.analyzed.analysis, &path))
    }

    /// Returns the events as columns.
    fn arrow(&self, py: Python<'_>) -> PyResult<ArrowTable> {
        py.enter(|| Ok::<_, Error>(ArrowTable::new(event_columns(&self.analyzed.analysis))))
    }
}
