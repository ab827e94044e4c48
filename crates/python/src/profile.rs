//! A profile for Python: either a recording, assembled on first access, or read from a file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mindprof_analyze::GroupBy;
use mindprof_answers::Changes;
use mindprof_record::Capture;
use mindprof_report::told;
use mindprof_trace::read_trace_file;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::analyzed::Analyzed;
use crate::averages::Averages;
use crate::code_costs::CodeQuestion;
use crate::enter::Enter;
use crate::error::Error;
use crate::events::Events;
use crate::held_tensors::Holders;
use crate::py_cache::classes;
use crate::replays::{PathQuestion, advice, what_if};

/// One profile with its analysis, which is computed by the first call that needs it.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct Profile {
    /// The recording until the analysis exists. It is dropped then, because it takes as much memory
    /// as the profile.
    capture: Mutex<Option<Capture>>,
    analyzed: OnceLock<Arc<Analyzed>>,
    /// The modules and optimizers that were seen while Python calls were recorded.
    pub(crate) holders: Holders,
    /// The result of torch's own collector, kept for its event tree if the options ask for memory,
    /// inputs and stacks.
    pub(crate) collected: Option<Py<PyAny>>,
}

impl Profile {
    pub(crate) fn from_capture(capture: Capture, holders: Holders) -> Self {
        Self {
            capture: Mutex::new(Some(capture)),
            analyzed: OnceLock::new(),
            holders,
            collected: None,
        }
    }

    pub(crate) fn from_analyzed(analyzed: Arc<Analyzed>) -> Self {
        Self {
            capture: Mutex::default(),
            analyzed: OnceLock::from(analyzed),
            holders: Holders::default(),
            collected: None,
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
        classes(py)?.meet_torch.call0(py)?;
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

    /// Answers a question of `mindprof_answers::QUESTIONS` as JSON.
    fn ask(&self, py: Python<'_>, question: &str) -> PyResult<String> {
        let found = py.enter(|| Ok::<_, Error>(self.analyzed().ask(question)))?;
        found.ok_or_else(|| PyValueError::new_err(format!("unknown question {question:?}")))
    }

    /// Answers a question about the profile as text.
    #[pyo3(signature = (question, width = None))]
    fn told(&self, py: Python<'_>, question: &str, width: Option<usize>) -> PyResult<String> {
        let found =
            py.enter(|| Ok::<_, Error>(told(&self.analyzed().analysis, question, width)))?;
        found.ok_or_else(|| PyValueError::new_err(format!("unknown question {question:?}")))
    }

    /// Returns the cost of the user's `functions`, `lines` or `modules` as JSON and as text.
    #[pyo3(signature = (what, *, mine = Vec::new(), file = None, instances = false, width = None))]
    fn code_costs(
        &self,
        py: Python<'_>,
        what: &str,
        mine: Vec<String>,
        file: Option<String>,
        instances: bool,
        width: Option<usize>,
    ) -> PyResult<(String, String)> {
        let asked = CodeQuestion {
            mine,
            file,
            instances,
            width,
        };
        let found = py.enter(|| Ok::<_, Error>(asked.answer(self.analyzed(), what)))?;
        found.ok_or_else(|| PyValueError::new_err(format!("unknown question {what:?}")))
    }

    /// Returns why the steps are slow as JSON and as text.
    #[pyo3(signature = (*, mine = Vec::new(), width = None))]
    fn advice(
        &self,
        py: Python<'_>,
        mine: Vec<String>,
        width: Option<usize>,
    ) -> PyResult<(String, String)> {
        py.enter(|| Ok::<_, Error>(advice(self.analyzed(), &mine, width)))
    }

    /// Returns the critical path as JSON and as text, and writes a trace with it to `out`.
    #[pyo3(signature = (*, mine = Vec::new(), limit = 10, recorded = false, out = None, width = None))]
    fn critical_path(
        &self,
        py: Python<'_>,
        mine: Vec<String>,
        limit: usize,
        recorded: bool,
        out: Option<PathBuf>,
        width: Option<usize>,
    ) -> PyResult<(String, String)> {
        let asked = PathQuestion {
            mine,
            limit,
            recorded,
            width,
        };
        py.enter(|| asked.answer(self.analyzed(), out.as_deref()))
    }

    /// Returns how long steps would take with changes, as JSON and as text. `scales` are names with
    /// factors; `without` lists what is dropped: `synchronization`, `data_loading`, `copies` or
    /// `launches`.
    #[pyo3(signature = (scales, *, without = Vec::new(), width = None))]
    fn what_if(
        &self,
        py: Python<'_>,
        scales: Vec<(String, f64)>,
        without: Vec<String>,
        width: Option<usize>,
    ) -> PyResult<(String, String)> {
        let is_without = |what: &str| without.iter().any(|name| name == what);
        let changes = Changes {
            scales,
            no_synchronization: is_without("synchronization"),
            overlap_copies: is_without("copies"),
            no_data_loading: is_without("data_loading"),
            cuda_graphs: is_without("launches"),
        };
        let found = py.enter(|| Ok::<_, Error>(what_if(self.analyzed(), &changes, width)))?;
        found.map_err(PyValueError::new_err)
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
