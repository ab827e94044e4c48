//! Profiles and events that go to another process, or are copied.
//!
//! A profile travels as a trace; so does the store of its events, once for all of its handles, and a
//! handle as its place in it. A copy within the process shares the profile, which never changes.

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

/// What was set on items, as it travels.
type Changes<'py> = Vec<(ItemKey, Bound<'py, PyDict>)>;

/// How something is made again: by what, and of what.
type Recipe<'py, Parts> = (Bound<'py, PyAny>, Parts);

/// Makes a profile that travelled.
#[pyfunction]
pub(crate) fn profile_of_trace(py: Python<'_>, trace: &[u8]) -> PyResult<Profile> {
    Ok(Profile::from_analyzed(read(py, trace)?))
}

/// Makes the store of events that travelled.
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

/// Returns the handle of an item of a store.
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
            "an event that travelled is number {index} of {count}: its profile is damaged"
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
        let py = slf.py();
        let make = classes(py)?.profile_of_trace.bind(py).clone();
        Ok((make, (write(py, slf.get().analyzed())?,)))
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
    /// What was set on events is told afterwards, because it may hold events of this store.
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
        // Before what was set is copied, for the same reason.
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

    /// Returns an event that holds its attributes itself: what is set on it is its own.
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let class = classes(slf.py())?.function_event.bind(slf.py());
        class.call_method1("_copied", (slf,))
    }
}
