//! Ranges by pairs of calls and with arguments, which frameworks open around their own code.

use mindprof_model::KeywordValue;
use mindprof_record::{Name, NameKind, OpenScope, is_recording, open, open_range, wants_inputs};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyString, PyTuple};

use crate::arguments::Arguments;
use crate::gil_cell::GilCell;
use crate::keyword_arguments;
use crate::sole_reference::is_sole;

/// How many handles of closed operators are held for those that come.
const MOST_SPARE: usize = 16;

/// Handles of closed operators. One that nobody else holds any more is used again: to make one
/// costs as much as to record an operator.
static SPARE: GilCell<Vec<Py<RangeHandle>>> = GilCell::new(Vec::new());

/// An open range.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct RangeHandle {
    open: GilCell<Option<OpenScope>>,
}

impl RangeHandle {
    /// Returns the handle of an operator.
    pub(crate) fn of_operator(py: Python<'_>, open: OpenScope) -> PyResult<Py<Self>> {
        let spare = SPARE.with(py, (), |spare, ()| spare.pop());
        match spare.filter(|handle| is_sole(py, handle)) {
            Some(handle) => {
                let scope = &handle.get().open;
                let before = scope.with(py, Some(open), std::mem::replace);
                debug_assert!(before.is_none(), "what is spare is closed");
                Ok(handle)
            }
            None => Py::new(py, Self::from(open)),
        }
    }

    /// Closes an operator, whose handle may be that of another one as soon as nobody holds it.
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
        // What there is no room for is dropped out here.
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

    /// Returns that of a range that nothing records.
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

/// A range that nobody can close any more ends where its handle is let go of, as in torch: left open,
/// it would be around all that its thread does until the recording ends.
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

/// What a range is given, taken out of Python; nothing where that is not recorded.
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

    /// Returns as what the range counts: an operator, unless it says to be a range of the user's.
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

/// Opens a range with inputs.
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

/// Opens the range of a collection of Python's garbage.
#[pyfunction]
pub(crate) fn garbage_collection_enter() -> RangeHandle {
    let name = Name::intern("Python GC", NameKind::Function);
    RangeHandle {
        open: GilCell::new(open(name)),
    }
}

/// Closes a range; one that is closed stays so.
#[pyfunction]
pub(crate) fn record_function_with_args_exit(py: Python<'_>, handle: &RangeHandle) {
    handle.close(py);
}

/// The range of a step, which is counted by what ends it: it lies beside the calls of its thread, as
/// they begin and end without regard to it, and is named anew if the step turns out to be none.
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

    /// Closes the range, under another name if one is given; one that is closed stays so.
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

/// A range that counts as an operator.
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
