//! Ranges by pairs of calls and with arguments, which frameworks open around their own code.

use mindprof_record::{Name, NameKind, OpenScope, is_recording, open, open_range};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyString, PyTuple};

use crate::argument::Argument;
use crate::gil_cell::GilCell;

/// An open range.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct RangeHandle {
    open: GilCell<Option<OpenScope>>,
}

impl RangeHandle {
    fn open(name: &Bound<'_, PyString>, kind: NameKind, arguments: &[Bound<'_, PyAny>]) -> Self {
        let open = if is_recording() {
            let arguments: Vec<Argument> = arguments.iter().map(Argument::from_python).collect();
            open_range(&name.to_string_lossy(), kind, |inputs| {
                for argument in &arguments {
                    argument.encode(inputs);
                }
            })
        } else {
            None
        };
        Self {
            open: GilCell::new(open),
        }
    }

    fn close(&self, py: Python<'_>) {
        if let Some(open) = self.open.with(py, None, std::mem::replace) {
            open.close();
        }
    }
}

/// Opens a range with inputs.
#[pyfunction]
#[pyo3(signature = (name, *args))]
pub(crate) fn record_function_with_args_enter(
    name: &Bound<'_, PyString>,
    args: &Bound<'_, PyTuple>,
) -> RangeHandle {
    let arguments: Vec<Bound<'_, PyAny>> = args.iter().collect();
    RangeHandle::open(name, NameKind::Annotation, &arguments)
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

/// A range that counts as an operator.
#[pyclass(frozen, name = "RecordFunctionFast", module = "mindprof._core")]
pub(crate) struct RecordFunctionFast {
    name: Py<PyString>,
    input_values: Vec<Py<PyAny>>,
    handle: GilCell<Option<RangeHandle>>,
}

#[pymethods]
impl RecordFunctionFast {
    #[new]
    #[pyo3(signature = (name, input_values = None, keyword_values = None))]
    #[expect(
        unused_variables,
        reason = "values by keyword are accepted; a profile has no place for them"
    )]
    fn new(
        name: Py<PyString>,
        input_values: Option<Vec<Py<PyAny>>>,
        keyword_values: Option<Py<PyAny>>,
    ) -> Self {
        Self {
            name,
            input_values: input_values.unwrap_or_default(),
            handle: GilCell::default(),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        let (this, py) = (slf.get(), slf.py());
        let values: Vec<_> = this
            .input_values
            .iter()
            .map(|value| value.bind(py).clone())
            .collect();
        let handle = RangeHandle::open(this.name.bind(py), NameKind::Operator, &values);
        this.handle.with(py, Some(handle), std::mem::replace);
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        if let Some(handle) = self.handle.with(py, None, std::mem::replace) {
            handle.close(py);
        }
    }
}
