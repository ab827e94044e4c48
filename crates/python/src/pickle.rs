//! Events that go to another process, or are copied: the store travels as a trace, once for all of
//! its handles, and a handle as its place in it.

use std::sync::Arc;

use mindprof_analyze::Item;
use mindprof_formats::{read_trace, write_trace};
use mindprof_model::EventId;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::analyzed::Analyzed;
use crate::enter::Enter;
use crate::error::Error;
use crate::events::{Events, ItemKey};
use crate::function_event::FunctionEvent;
use crate::once::classes;

/// What was set on items, as it travels.
type Changes<'py> = Vec<(ItemKey, Bound<'py, PyDict>)>;

/// How something is made again: by what, and of what.
type Recipe<'py, Parts> = (Bound<'py, PyAny>, Parts);

/// Makes the store of events that travelled.
#[pyfunction]
pub(crate) fn events_of_trace(
    py: Python<'_>,
    trace: &[u8],
    changes: Changes<'_>,
) -> PyResult<Events> {
    let events = py.enter(|| Ok::<_, Error>(Events::new(Analyzed::new(read_trace(trace)?))))?;
    for (key, set) in changes {
        events.change_mut(py, key).update(set.as_mapping())?;
    }
    Ok(events)
}

/// Returns the handle of an item of a store.
#[pyfunction]
pub(crate) fn event_at<'py>(
    store: &Bound<'py, Events>,
    item: ItemKey,
) -> PyResult<Bound<'py, FunctionEvent>> {
    let (is_memory, index) = item;
    let item = if is_memory {
        Item::Memory(index)
    } else {
        Item::Event(EventId::from_raw(index))
    };
    Events::handle(&store.clone().unbind(), store.py(), item)
}

#[pymethods]
impl Events {
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<Recipe<'py, (Bound<'py, PyBytes>, Changes<'py>)>> {
        let (py, this) = (slf.py(), slf.get());
        let analyzed = Arc::clone(&this.analyzed);
        let trace = py.enter(move || {
            let mut trace = Vec::new();
            write_trace(analyzed.analysis.profile(), "", &mut trace)?;
            Ok::<_, Error>(trace)
        })?;
        let make = classes(py)?.events_of_trace.bind(py).clone();
        Ok((make, (PyBytes::new(py, &trace), this.changes(py))))
    }
}

#[pymethods]
impl FunctionEvent {
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<Recipe<'py, (Bound<'py, Events>, ItemKey)>> {
        let (py, this) = (slf.py(), slf.get());
        let make = classes(py)?.event_at.bind(py).clone();
        Ok((make, (this.store(py), this.key())))
    }

    /// Returns an event that holds its attributes itself: what is set on it is its own.
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let class = classes(slf.py())?.function_event.bind(slf.py());
        class.call_method1("_copied", (slf,))
    }
}
