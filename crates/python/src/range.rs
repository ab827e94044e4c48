//! Ranges that frameworks open and close with a pair of calls, optionally with arguments.
//!
//! Covers torch's `_record_function_with_args_enter` and `_RecordFunctionFast`, the ranges of steps
//! and of garbage collections, and the handles of operators that `host_operators` opens.

use mindprof_model::KeywordValue;
use mindprof_record::{Name, NameKind, OpenScope, is_recording, open, open_range, wants_inputs};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyString, PyTuple};

use crate::arguments::Arguments;
use crate::gil_cell::GilCell;
use crate::keyword_arguments;
use crate::sole_reference::is_sole;

/// The maximum number of handles of closed operators that are kept for reuse.
const MOST_SPARE: usize = 16;

/// Handles of closed operators, for reuse once Python has dropped its reference. Allocating a new
/// handle costs as much as recording an operator.
static SPARE: GilCell<Vec<Py<RangeHandle>>> = GilCell::new(Vec::new());

/// The handle of an open range, which Python passes back to close it.
///
/// It is empty if nothing was recording when the range was opened, and once the range is closed.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct RangeHandle {
    open: GilCell<Option<OpenScope>>,
}

impl RangeHandle {
    /// Returns a handle for an operator, a reused one if possible.
    pub(crate) fn of_operator(py: Python<'_>, open: OpenScope) -> PyResult<Py<Self>> {
        let spare = SPARE.with(py, (), |spare, ()| spare.pop());
        match spare.filter(|handle| is_sole(py, handle)) {
            Some(handle) => {
                let scope = &handle.get().open;
                let before = scope.with(py, Some(open), std::mem::replace);
                debug_assert!(before.is_none(), "spare handles are closed");
                Ok(handle)
            }
            None => Py::new(py, Self::from(open)),
        }
    }

    /// Closes an operator and keeps its handle for reuse. A handle that is already closed is
    /// ignored.
    pub(crate) fn close_operator(slf: &Bound<'_, Self>) {
        let (this, py) = (slf.get(), slf.py());
        let Some(open) = this.open.with(py, None, std::mem::replace) else {
            return;
        };
        open.close();
        let keep = |spare: &mut Vec<Py<Self>>, handle: Py<Self>| {
            if spare.len() == MOST_SPARE {
                return Some(handle);
            }
            spare.push(handle);
            None
        };
        // A handle that does not fit is dropped here, outside of the cell.
        drop(SPARE.with(py, slf.clone().unbind(), keep));
    }

    fn open(name: &Bound<'_, PyString>, kind: NameKind, given: &Given) -> Self {
        let open = open_range(&name.to_string_lossy(), kind, |inputs| {
            given.arguments.encode(inputs);
            if !given.keywords.is_empty() {
                inputs.keywords(&given.keywords);
            }
        });
        Self {
            open: GilCell::new(open),
        }
    }

    /// Returns the handle of a range that is not recorded.
    fn unrecorded() -> Self {
        Self {
            open: GilCell::default(),
        }
    }

    pub(crate) fn close(&self, py: Python<'_>) {
        if let Some(open) = self.open.with(py, None, std::mem::replace) {
            open.close();
        }
    }
}

/// Closes a range whose handle is dropped while it is open, as torch does. Otherwise it would
/// enclose everything that its thread does until the recording ends.
impl Drop for RangeHandle {
    fn drop(&mut self) {
        if let Some(open) = self.open.get_mut().take() {
            open.close();
        }
    }
}

impl From<OpenScope> for RangeHandle {
    fn from(open: OpenScope) -> Self {
        Self {
            open: GilCell::new(Some(open)),
        }
    }
}

/// The arguments of a range, extracted from Python. It is empty if inputs are not recorded.
#[derive(Default)]
struct Given {
    arguments: Arguments,
    keywords: Vec<(String, KeywordValue)>,
}

impl Given {
    fn from_python<'py>(
        values: impl Iterator<Item = Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        if !wants_inputs() {
            return Ok(Self::default());
        }
        let mut arguments = Arguments::default();
        for value in values {
            arguments.add(&value)?;
        }
        let keywords = keywords.map(keyword_arguments::keywords).transpose()?;
        Ok(Self {
            arguments,
            keywords: keywords.unwrap_or_default(),
        })
    }

    /// Returns the kind of the range: an operator, unless the keyword `scope` makes it a user
    /// range.
    fn kind(&self) -> NameKind {
        let is_users = self.keywords.iter().any(|(name, value)| {
            name == "scope" && matches!(value, KeywordValue::Text(text) if text == "user_scope")
        });
        if is_users {
            NameKind::Annotation
        } else {
            NameKind::Operator
        }
    }
}

/// Opens a range with inputs and returns its handle.
#[pyfunction]
#[pyo3(signature = (name, *args))]
pub(crate) fn record_function_with_args_enter(
    name: &Bound<'_, PyString>,
    args: &Bound<'_, PyTuple>,
) -> PyResult<RangeHandle> {
    if !is_recording() {
        return Ok(RangeHandle::unrecorded());
    }
    let given = Given::from_python(args.iter(), None)?;
    Ok(RangeHandle::open(name, NameKind::Annotation, &given))
}

/// A callback of Python's garbage collector that records each of its runs as a range.
///
/// It is a native object rather than a Python function, so that it does not appear among the
/// recorded Python calls.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct GarbageListener {
    /// A weak reference to the profiler. It lets a profiler die that was never stopped.
    #[pyo3(get)]
    owner: Py<PyAny>,
    running: RangeHandle,
}

#[pymethods]
impl GarbageListener {
    #[new]
    fn new(owner: Py<PyAny>) -> Self {
        Self {
            owner,
            running: RangeHandle::unrecorded(),
        }
    }

    /// Opens the range when a run begins, and closes it when the run ends.
    fn __call__(&self, phase: &Bound<'_, PyString>, info: &Bound<'_, PyAny>) -> PyResult<()> {
        let (_, py) = (info, phase.py());
        self.running.close(py);
        if phase == "start" && !self.owner.bind(py).call0()?.is_none() {
            let opened = open(Name::intern("Python GC", NameKind::Function));
            self.running.open.with(py, opened, std::mem::replace);
        }
        Ok(())
    }
}

/// Closes a range. A range that is already closed stays so.
#[pyfunction]
pub(crate) fn record_function_with_args_exit(py: Python<'_>, handle: &RangeHandle) {
    handle.close(py);
}

/// The range of a step.
///
/// Calls of its thread begin and end regardless of it, so it is recorded as asynchronous rather
/// than as their parent. It is renamed when it is closed if it turns out not to be a full step.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct StepRange {
    handle: RangeHandle,
}

#[pymethods]
impl StepRange {
    #[new]
    fn new(name: &str) -> Self {
        let mut open = open_range(name, NameKind::Annotation, |_| {});
        if let Some(open) = &mut open {
            open.set_async();
        }
        Self {
            handle: RangeHandle {
                open: GilCell::new(open),
            },
        }
    }

    /// Closes the range, under another name if one is given. A closed range stays as it is.
    #[pyo3(signature = (name = None))]
    fn close(&self, py: Python<'_>, name: Option<&str>) {
        let Some(mut open) = self.handle.open.with(py, None, std::mem::replace) else {
            return;
        };
        if let Some(name) = name {
            open.rename(name, NameKind::Annotation);
        }
        open.close();
    }
}

/// A range that counts as an operator, as a context manager: torch's `_RecordFunctionFast`.
#[pyclass(frozen, name = "RecordFunctionFast", module = "mindprof._core")]
pub(crate) struct RecordFunctionFast {
    name: Py<PyString>,
    input_values: Vec<Py<PyAny>>,
    keyword_values: Option<Py<PyDict>>,
    handle: GilCell<Option<RangeHandle>>,
}

#[pymethods]
impl RecordFunctionFast {
    #[new]
    #[pyo3(signature = (name, input_values = None, keyword_values = None))]
    fn new(
        name: Py<PyString>,
        input_values: Option<Vec<Py<PyAny>>>,
        keyword_values: Option<Py<PyDict>>,
    ) -> Self {
        Self {
            name,
            input_values: input_values.unwrap_or_default(),
            keyword_values,
            handle: GilCell::default(),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let (this, py) = (slf.get(), slf.py());
        let handle = if is_recording() {
            let values = this.input_values.iter().map(|value| value.bind(py).clone());
            let keywords = this.keyword_values.as_ref().map(|values| values.bind(py));
            let given = Given::from_python(values, keywords)?;
            RangeHandle::open(this.name.bind(py), given.kind(), &given)
        } else {
            RangeHandle::unrecorded()
        };
        this.handle.with(py, Some(handle), std::mem::replace);
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        if let Some(handle) = self.handle.with(py, None, std::mem::replace) {
            handle.close(py);
        }
    }
}
