//! `record_function`: a range with a name of the user's choice, as a context manager and a
//! decorator.
//!
//! The class follows `torch.profiler.record_function`, including its attributes and assertions.

use std::sync::atomic::{AtomicBool, Ordering};

use mindprof_record::{NameKind, OpenScope, ThreadKey, is_recording, open_range};
use pyo3::exceptions::{PyAssertionError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::gil_cell::GilCell;
use crate::pending_exception::ignore_errors;

/// Marks a range of the program in every profile that is being recorded.
///
/// It works as a context manager and as a decorator, and one instance can be entered several times.
#[pyclass(frozen, name = "record_function", module = "mindprof", subclass)]
pub(crate) struct RecordFunction {
    #[pyo3(get)]
    name: Py<PyAny>,
    #[pyo3(get)]
    args: Option<Py<PyAny>>,
    /// Whether leaving the range ends it. Otherwise a future does.
    ends_on_exit: AtomicBool,
    state: GilCell<State>,
}

/// The ranges that were entered and not yet left. One instance may be entered again before it is
/// left.
#[derive(Default)]
struct State {
    was_entered: bool,
    depth: usize,
    /// The range entered last, or `None` if nothing was recording then.
    innermost: Option<OpenScope>,
    outer: Vec<Option<OpenScope>>,
}

#[pymethods]
impl RecordFunction {
    #[new]
    #[pyo3(signature = (name, args = None))]
    fn new(name: Py<PyAny>, args: Option<Py<PyAny>>) -> Self {
        Self {
            name,
            args,
            ends_on_exit: AtomicBool::new(true),
            state: GilCell::default(),
        }
    }

    /// The range itself once it was entered, else None.
    #[getter]
    fn record(slf: Bound<'_, Self>) -> Option<Bound<'_, Self>> {
        slf.get().was_entered(slf.py()).then_some(slf)
    }

    /// Whether leaving the range ends it.
    #[getter]
    fn run_callbacks_on_exit(&self) -> bool {
        // Relaxed: no other data is published through this flag.
        self.ends_on_exit.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_run_callbacks_on_exit(&self, value: bool) {
        self.ends_on_exit.store(value, Ordering::Relaxed);
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let this = slf.get();
        let py = slf.py();
        // torch checks the types here and not at construction.
        let name = this.name.bind(py);
        let Ok(name) = name.cast::<PyString>() else {
            return Err(wrong_argument("str", "name", 0, name));
        };
        let args = this.args.as_ref().map(|args| args.bind(py));
        if let Some(args) = args
            && !args.is_instance_of::<PyString>()
        {
            return Err(wrong_argument("Optional[str]", "args", 1, args));
        }
        let scope = if is_recording() {
            // A name with lone surrogates is not valid UTF-8: they become replacement characters.
            let text = name.to_string_lossy();
            open_range(&text, NameKind::Annotation, |inputs| {
                if args.is_some() {
                    inputs.other();
                }
            })
        } else {
            None
        };
        this.state.with(py, scope, State::enter);
        Ok(slf)
    }

    fn __call__<'py>(
        slf: Bound<'py, Self>,
        function: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let decorators = slf.py().import("mindprof._profiler.decorate")?;
        decorators.call_method1("decorate", (slf, function))
    }

    #[expect(
        unused_variables,
        reason = "a context manager receives them, and their names are part of torch's signature"
    )]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        exc_value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if self.run_callbacks_on_exit() {
            return self.end(py);
        }
        self.expect_entered(py)
    }

    /// Ends the range when `fut` completes instead of on exit, and returns a future with the same
    /// value.
    fn _call_end_callbacks_on_future<'py>(
        slf: Bound<'py, Self>,
        fut: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        if !this.run_callbacks_on_exit() {
            return Err(PyRuntimeError::new_err(
                "_call_end_callbacks_on_future can only be called once.",
            ));
        }
        this.set_run_callbacks_on_exit(false);
        this.expect_entered(slf.py())?;
        let decorators = slf.py().import("mindprof._profiler.decorate")?;
        decorators.call_method1("end_with_future", (slf, fut))
    }

    /// Ends the range.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py)
    }
}

impl RecordFunction {
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.expect_entered(py)?;
        if let Some(scope) = self.state.with(py, (), |state, ()| state.leave()) {
            scope.close();
        }
        Ok(())
    }

    fn expect_entered(&self, py: Python<'_>) -> PyResult<()> {
        self.was_entered(py).then_some(()).ok_or_else(not_entered)
    }

    fn was_entered(&self, py: Python<'_>) -> bool {
        self.state.with(py, (), |state, ()| state.was_entered)
    }
}

impl State {
    fn enter(&mut self, scope: Option<OpenScope>) {
        let outer = std::mem::replace(&mut self.innermost, scope);
        if self.depth > 0 {
            self.outer.push(outer);
        }
        self.depth += 1;
        self.was_entered = true;
    }

    /// Removes and returns the range that was entered last, preferring one of the current thread.
    fn leave(&mut self) -> Option<OpenScope> {
        self.depth = self.depth.saturating_sub(1);
        if !self.outer.is_empty() {
            let here = ThreadKey::current();
            let is_own = |range: &Option<OpenScope>| {
                let thread = range.as_ref().map(OpenScope::thread);
                thread == Some(here)
            };
            let own = self.outer.iter().rposition(is_own);
            if let Some(own) = own.filter(|_| !is_own(&self.innermost)) {
                return self.outer.remove(own);
            }
        }
        let outer = self.outer.pop().flatten();
        std::mem::replace(&mut self.innermost, outer)
    }
}

fn not_entered() -> PyErr {
    PyAssertionError::new_err("Expected record to be set")
}

fn wrong_argument(
    expected: &str,
    argument: &str,
    position: usize,
    value: &Bound<'_, PyAny>,
) -> PyErr {
    let text = |text: PyResult<Bound<'_, PyString>>| {
        let text = ignore_errors(value.py(), text);
        text.map_or_else(|| "?".into(), |text| text.to_string_lossy().into_owned())
    };
    let found = text(value.get_type().name());
    let value = text(value.repr());
    PyRuntimeError::new_err(format!(
        "profiler::_record_function_enter_new() Expected a value of type '{expected}' for argument \
         '{argument}' but instead found type '{found}'.\nPosition: {position}\nValue: {value}\n\
         Declaration: profiler::_record_function_enter_new(str name, str? args=None)"
    ))
}
