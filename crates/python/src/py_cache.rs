//! Cells that several modules share: the accessor names of torch's results, and classes of the
//! package `mindprof`.
//!
//! Both are filled while the packages are imported and never at first use, for the sake of forks:
//! see [`mod@mindprof_python_support::interned_names`].

use mindprof_python_support::interned_names;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

interned_names! {
    /// Accessors of the results of torch's collector.
    pub(crate) struct AccessorNames {
        activity_type,
        concrete_inputs,
        correlation_id,
        device_index,
        device_resource_id,
        device_type,
        dtypes,
        end_ns,
        end_thread_id,
        events,
        external_id,
        fwd_thread_id,
        is_async,
        is_hidden_event,
        is_python_function,
        is_user_annotation,
        kwinputs,
        linked_correlation_id,
        name,
        nbytes,
        scope,
        sequence_nr,
        shapes,
        stack,
        start_ns,
        start_thread_id,
        structured_input_shapes,
        structured_input_strides,
        trace_start_ns,
    }
}

/// Classes and functions of the package `mindprof` that the native module calls or returns.
pub(crate) struct Classes {
    /// The package itself, as it was imported first.
    package: Py<PyAny>,
    /// The members of `DeviceType`, by number.
    pub(crate) device_types: Py<PyList>,
    pub(crate) function_event: Py<PyAny>,
    pub(crate) interval: Py<PyAny>,
    pub(crate) kernel: Py<PyAny>,
    /// The functions that restore pickled events, profiles and event handles.
    pub(crate) events_of_trace: Py<PyAny>,
    pub(crate) profile_of_trace: Py<PyAny>,
    pub(crate) event_at: Py<PyAny>,
    /// The function that joins our classes with those of an imported torch.
    pub(crate) meet_torch: Py<PyAny>,
    /// The value that `sys.getprofile` returns while our profile hook is installed.
    pub(crate) marker: Py<PyAny>,
}

/// Returns the names of the accessors of torch's results.
pub(crate) fn accessor_names(py: Python<'_>) -> &'static AccessorNames {
    AccessorNames::get(py)
}

/// Returns the classes.
pub(crate) fn classes(py: Python<'_>) -> PyResult<&'static Classes> {
    CLASSES.get_or_try_init(py, || {
        let events = py.import("mindprof._results.function_event")?;
        let class = |name| Ok::<_, PyErr>(events.getattr(name)?.unbind());
        let members = py
            .import("mindprof._results.device_type")?
            .getattr("MEMBERS")?;
        let core = py.import("mindprof._core")?;
        let torch_classes = py.import("mindprof._torch_classes")?;
        Ok(Classes {
            package: py.import("mindprof")?.into_any().unbind(),
            device_types: members.cast_into::<PyList>()?.unbind(),
            function_event: class("FunctionEvent")?,
            interval: class("Interval")?,
            kernel: class("Kernel")?,
            events_of_trace: core.getattr("events_of_trace")?.unbind(),
            profile_of_trace: core.getattr("profile_of_trace")?.unbind(),
            event_at: core.getattr("event_at")?.unbind(),
            meet_torch: torch_classes.getattr("meet_torch")?.unbind(),
            marker: core.getattr("follow_thread")?.unbind(),
        })
    })
}

/// Fills the cell that needs no Python package.
pub(crate) fn prefill(py: Python<'_>) {
    accessor_names(py);
}

/// Fills the cell of classes. The package `mindprof` calls it at the end of its import.
#[pyfunction]
pub(crate) fn look_up_classes(py: Python<'_>) -> PyResult<()> {
    classes(py).map(|_| ())
}

/// Returns the package `mindprof` as it was imported first, or `None` if this is the first import.
#[pyfunction]
pub(crate) fn first_package(py: Python<'_>) -> Option<Py<PyAny>> {
    let classes = CLASSES.get(py)?;
    Some(classes.package.clone_ref(py))
}
