//! `record_function`: a range that the user names, as a context manager and a decorator.

use std::sync::{Mutex, PoisonError};

use mindprof_record::{Name, NameKind, OpenScope, is_recording, open};
use pyo3::exceptions::{PyAssertionError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Marks a range of the program in every profile that is being recorded.
#[pyclass(frozen, name = "record_function", module = "mindprof", subclass)]
pub(crate) struct RecordFunction {
    #[pyo3(get)]
    name: Py<PyAny>,
    #[pyo3(get)]
    args: Option<Py<PyAny>>,
    state: Mutex<State>,
}

/// Where a range is in its life.
enum State {
    NotEntered,
    /// Entered; the scope is none if nothing recorded at that moment.
    Entered(Option<OpenScope>),
}

#[pymethods]
impl RecordFunction {
    #[new]
    #[pyo3(signature = (name, args = None))]
    fn new(name: Py<PyAny>, args: Option<Py<PyAny>>) -> Self {
        Self {
            name,
            args,
            state: Mutex::new(State::NotEntered),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let this = slf.get();
        let py = slf.py();
        // torch checks the name's type here and not at construction.
        let name = this.name.bind(py);
        let Ok(name) = name.cast::<PyString>() else {
            return Err(wrong_name(name));
        };
        let scope = if is_recording() {
            // A name with lone surrogates is no UTF-8; it is shown with replacement characters.
            let text = name.to_string_lossy();
            open(Name::intern(&text, NameKind::Annotation))
        } else {
            None
        };
        *this.lock() = State::Entered(scope);
        Ok(slf)
    }

    fn __call__<'py>(
        slf: Bound<'py, Self>,
        function: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let decorators = slf.py().import("mindprof._decorate")?;
        decorators.call_method1("decorate", (slf, function))
    }

    fn __exit__(
        &self,
        _exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let state = std::mem::replace(&mut *self.lock(), State::NotEntered);
        match state {
            State::Entered(scope) => {
                if let Some(scope) = scope {
                    scope.close();
                }
                Ok(())
            }
            State::NotEntered => Err(PyAssertionError::new_err("Expected record to be set")),
        }
    }
}

impl RecordFunction {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wrong_name(name: &Bound<'_, PyAny>) -> PyErr {
    let found = name
        .get_type()
        .name()
        .map_or_else(|_| "?".into(), |name| name.to_string());
    PyRuntimeError::new_err(format!(
        "record_function() Expected a value of type 'str' for argument 'name' but instead found \
         type '{found}'."
    ))
}
