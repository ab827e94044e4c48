//! A profile for Python: a recording that becomes a profile at its first access, or a profile read
//! from a file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mindprof_analyze::{GroupBy, microseconds, process_time, spans, time_inside, without_calls};
use mindprof_model::DeviceKind;
use mindprof_record::Capture;
use mindprof_trace::read_trace_file;
use pyo3::prelude::*;

use crate::analyzed::Analyzed;
use crate::averages::Averages;
use crate::enter::Enter;
use crate::error::Error;
use crate::events::Events;

/// One profile with its analysis. Both are computed once, by the first call that needs them.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct Profile {
    /// The recording, until the analysis exists. It takes as much memory as the profile.
    capture: Mutex<Option<Capture>>,
    analyzed: OnceLock<Arc<Analyzed>>,
}

impl Profile {
    pub(crate) fn from_capture(capture: Capture) -> Self {
        Self {
            capture: Mutex::new(Some(capture)),
            analyzed: OnceLock::new(),
        }
    }

    pub(crate) fn from_analyzed(analyzed: Arc<Analyzed>) -> Self {
        Self {
            capture: Mutex::default(),
            analyzed: OnceLock::from(analyzed),
        }
    }

    /// Returns the analysis, which the first call computes.
    pub(crate) fn analyzed(&self) -> &Arc<Analyzed> {
        self.analyzed.get_or_init(|| {
            let mut capture = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
            let recorded = capture.take();
            let profile = recorded
                .expect("a profile without a capture is made with its analysis")
                .assemble();
            Analyzed::new(profile)
        })
    }
}

#[pymethods]
impl Profile {
    /// Reads a profile from a trace file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let read = move || Ok::<_, Error>(Analyzed::new(read_trace_file(&path)?));
        let analyzed = py.enter_alone(read)?;
        Ok(Self::from_analyzed(analyzed))
    }

    /// Returns the events of the profile.
    fn events(&self, py: Python<'_>) -> PyResult<Events> {
        py.enter(|| Ok::<_, Error>(Events::new(Arc::clone(self.analyzed()))))
    }

    /// Returns the rows of the profile.
    #[pyo3(signature = (*, group_by_input_shape, include_python_functions, group_by_stack_n = 0))]
    fn averages(
        &self,
        py: Python<'_>,
        group_by_input_shape: bool,
        include_python_functions: bool,
        group_by_stack_n: usize,
    ) -> PyResult<Averages> {
        let group_by = GroupBy {
            input_shapes: group_by_input_shape,
            stack_frames: group_by_stack_n,
            python_functions: include_python_functions,
        };
        py.enter(|| Ok::<_, Error>(Averages::new(Arc::clone(self.analyzed()), group_by)))
    }

    /// Returns a copy without Python calls; their time goes to the ranges around them.
    fn without_calls(&self, py: Python<'_>) -> PyResult<Self> {
        let profile = self.analyzed().analysis.profile();
        let analyzed = py.enter(|| Ok::<_, Error>(Analyzed::new(without_calls(profile))))?;
        Ok(Self::from_analyzed(analyzed))
    }

    /// Returns for each row how many microseconds of its time events with these names took.
    fn time_inside(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        include_python_functions: bool,
    ) -> PyResult<Vec<f64>> {
        let analysis = &self.analyzed().analysis;
        let group_by = GroupBy {
            python_functions: include_python_functions,
            ..GroupBy::default()
        };
        py.enter(|| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let times = time_inside(analysis, group_by, &names);
            Ok::<_, Error>(times.into_iter().map(microseconds).collect())
        })
    }

    /// Returns begin, end and thread of each event whose name has this prefix, in time order. Times
    /// are in nanoseconds since the Unix epoch.
    fn spans(&self, py: Python<'_>, prefix: &str) -> PyResult<Vec<(u64, u64, u64)>> {
        let profile = self.analyzed().analysis.profile();
        py.enter(|| {
            let zero = profile.reference_unix_ns();
            let spans = spans(profile, prefix).into_iter();
            let found = spans.map(|span| {
                let times = [span.begin, span.end].map(|time| zero.saturating_add(time.0));
                (times[0], times[1], span.thread.native)
            });
            Ok::<_, Error>(found.collect())
        })
    }

    /// Returns how many microseconds the threads of a process spent in events with other names.
    fn process_time(&self, py: Python<'_>, process: u64, without: Vec<String>) -> PyResult<f64> {
        let analysis = &self.analyzed().analysis;
        py.enter(|| {
            let without: Vec<&str> = without.iter().map(String::as_str).collect();
            let time = process_time(analysis, process, &without);
            Ok::<_, Error>(microseconds(time))
        })
    }

    /// Returns the processes of the CPU threads.
    fn processes(&self) -> Vec<u64> {
        let threads = self.analyzed().analysis.profile().threads().iter();
        let host = threads.filter(|thread| thread.device == DeviceKind::Cpu);
        let mut processes: Vec<u64> = host.map(|thread| thread.process).collect();
        processes.sort_unstable();
        processes.dedup();
        processes
    }

    /// Returns the start of the recording, in nanoseconds since the Unix epoch.
    fn trace_start_ns(&self) -> u64 {
        self.analyzed().analysis.profile().reference_unix_ns()
    }

    /// Returns the number of lost events.
    #[getter]
    fn lost(&self) -> u64 {
        self.analyzed().analysis.profile().loss().total()
    }

    fn __len__(&self) -> usize {
        self.analyzed().analysis.profile().events().len()
    }
}
