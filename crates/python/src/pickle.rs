//! Pickling and copying of profiles and events.
//!
//! A profile is pickled as a trace. So is the store of its events, once for all of its handles, and
//! a handle is pickled as its place in the store. Copies within the process share the profile,
//! which never changes.

use std::sync::Arc;

use mindprof_analyze::Item;
use mindprof_model::EventId;
use mindprof_trace::{read_trace, write_trace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::analyzed::Analyzed;
use crate::averages::Averages;
use crate::enter::Enter;
use crate::error::Error;
use crate::events::{Events, ItemKey};
use crate::function_event::FunctionEvent;
use crate::profile::Profile;
use crate::py_cache::classes;

/// The values that users set on items, as they are pickled.
type Changes<'py> = Vec<(ItemKey, Bound<'py, PyDict>)>;

/// The result of `__reduce__`: a callable and its arguments.
type Recipe<'py, Parts> = (Bound<'py, PyAny>, Parts);

/// Restores a pickled profile.
#[pyfunction]
pub(crate) fn profile_of_trace(py: Python<'_>, trace: &[u8]) -> PyResult<Profile> {
    Ok(Profile::from_analyzed(read(py, trace)?))
}

/// Restores a pickled store of events.
#[pyfunction]
#[pyo3(signature = (trace, changes = Vec::new()))]
pub(crate) fn events_of_trace(
    py: Python<'_>,
    trace: &[u8],
    changes: Changes<'_>,
) -> PyResult<Events> {
    let events = Events::new(read(py, trace)?);
    events.__setstate__(py, changes)?;
    Ok(events)
}

/// Restores a pickled handle: returns the handle of an item of `store`.
#[pyfunction]
pub(crate) fn event_at<'py>(
    store: &Bound<'py, Events>,
    item: ItemKey,
) -> PyResult<Bound<'py, FunctionEvent>> {
    let (is_memory, index) = item;
    let profile = store.get().analyzed.analysis.profile();
    let count = if is_memory {
        profile.memory().len()
    } else {
        profile.events().len()
    };
    if index as usize >= count {
        return Err(PyValueError::new_err(format!(
            "invalid pickle: event {index} is out of range, the profile has {count}"
        )));
    }
    let item = if is_memory {
        Item::Memory(index)
    } else {
        Item::Event(EventId::from_raw(index))
    };
    Events::handle(&store.clone().unbind(), store.py(), item)
}

fn read(py: Python<'_>, trace: &[u8]) -> PyResult<Arc<Analyzed>> {
    py.enter(|| Ok::<_, Error>(Analyzed::new(read_trace(trace)?)))
}

fn write<'py>(py: Python<'py>, analyzed: &Arc<Analyzed>) -> PyResult<Bound<'py, PyBytes>> {
    let analyzed = Arc::clone(analyzed);
    let trace = py.enter(move || {
        let mut trace = Vec::new();
        write_trace(analyzed.analysis.profile(), "", &mut trace)?;
        Ok::<_, Error>(trace)
    })?;
    Ok(PyBytes::new(py, &trace))
}

#[pymethods]
impl Profile {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Recipe<'py, (Bound<'py, PyBytes>,)>> {
        let (py, this) = (slf.py(), slf.get());
        let make = classes(py)?.profile_of_trace.bind(py).clone();
        Ok((make, (write(py, this.analyzed())?,)))
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, _memo: &Bound<'py, PyDict>) -> Bound<'py, Self> {
        slf.clone()
    }
}

#[pymethods]
impl Averages {
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, _memo: &Bound<'py, PyDict>) -> Bound<'py, Self> {
        slf.clone()
    }
}

#[pymethods]
impl Events {
    /// Passes the values that users set as state, which pickle restores later, because they may
    /// contain events of this store.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,), Changes<'py>)> {
        let (py, this) = (slf.py(), slf.get());
        let make = classes(py)?.events_of_trace.bind(py).clone();
        let trace = write(py, &this.analyzed)?;
        Ok((make, (trace,), this.changes(py)))
    }

    fn __setstate__(&self, py: Python<'_>, changes: Changes<'_>) -> PyResult<()> {
        for (key, set) in changes {
            self.change_mut(py, key).update(set.as_mapping())?;
        }
        Ok(())
    }

    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        memo: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, Self>> {
        let (py, this) = (slf.py(), slf.get());
        let copied = Bound::new(py, Self::new(Arc::clone(&this.analyzed)))?;
        // Registered before those values are copied, because they may contain events of this store.
        memo.set_item(slf.as_ptr() as usize, &copied)?;
        let deepcopy = py.import("copy")?.getattr("deepcopy")?;
        for (key, set) in this.changes(py) {
            let set = deepcopy.call1((set, memo))?;
            copied.get().change_mut(py, key).update(set.cast()?)?;
        }
        Ok(copied)
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

    /// Returns an independent event that holds its own attributes.
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let class = classes(slf.py())?.function_event.bind(slf.py());
        class.call_method1("_copied", (slf,))
    }
}
