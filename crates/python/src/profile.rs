//! A profile as Python holds it: a recording that becomes a profile when someone looks, or one read from a file.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use mindprof_analyze::{Analysis, GroupBy, averages};
use mindprof_formats::{read_trace_file, write_trace_file};
use mindprof_model as model;
use mindprof_record::Capture;
use pyo3::prelude::*;

use crate::averages::FunctionEventAvg;
use crate::enter::Enter;
use crate::error::Error;

/// One profile with its analysis. Both are computed once, by the first call that needs them.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct Profile {
    capture: Option<Capture>,
    analysis: OnceLock<Arc<Analysis>>,
}

impl Profile {
    pub(crate) fn from_capture(capture: Capture) -> Self {
        Self {
            capture: Some(capture),
            analysis: OnceLock::new(),
        }
    }

    /// Returns the analysis, made at the first call.
    pub(crate) fn analysis(&self) -> &Arc<Analysis> {
        self.analysis.get_or_init(|| {
            let profile = match &self.capture {
                Some(capture) => capture.assemble(),
                None => unreachable!("a profile without a capture is made with its analysis"),
            };
            Arc::new(Analysis::build(profile))
        })
    }
}

#[pymethods]
impl Profile {
    /// Reads the profile in a trace file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let profile = py.enter(move || read_trace_file(&path))?;
        Ok(Self {
            capture: None,
            analysis: OnceLock::from(Arc::new(Analysis::build(profile))),
        })
    }

    /// Returns the rows of the profile.
    #[pyo3(signature = (*, group_by_input_shape, include_python_functions))]
    fn averages(
        &self,
        py: Python<'_>,
        group_by_input_shape: bool,
        include_python_functions: bool,
    ) -> PyResult<Vec<FunctionEventAvg>> {
        let group_by = GroupBy {
            input_shapes: group_by_input_shape,
            stack_frames: 0,
            python_functions: include_python_functions,
        };
        py.enter(|| {
            let analysis = self.analysis();
            let rows = averages(analysis, group_by).rows;
            let wrap = |row| FunctionEventAvg::new(row, Arc::clone(analysis));
            Ok::<_, Error>(rows.into_iter().map(wrap).collect())
        })
    }

    /// Writes the profile as a Chrome trace.
    fn write_chrome_trace(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.enter(move || write_trace_file(self.analysis().profile(), &path))
    }

    /// Returns how many events were not kept.
    #[getter]
    fn lost(&self) -> u64 {
        self.analysis().profile().loss().total()
    }

    fn __len__(&self) -> usize {
        self.analysis().profile().events().len()
    }
}
