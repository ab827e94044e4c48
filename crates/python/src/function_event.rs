//! One recorded event as Python sees it: torch's attributes, read from the profile when they are
//! asked for.
//!
//! What follows from these attributes by torch's rules, and torch's methods, are those of the
//! Python class of the same name: whatever is not found here is looked up there.

#![expect(
    unsafe_code,
    reason = "the generic attribute lookup of Python has no safe wrapper in PyO3"
)]

use mindprof_analyze::{Analysis, Bytes, FlowEnd, Item, PythonCall};
use mindprof_model::{Category, DeviceKind, Event, EventId, InputsId, InputsIter, Links, Nanos};
use pyo3::exceptions::PyAttributeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFunction, PyModule, PyString, PyType};
use pyo3::{PyTraverseError, PyVisit};
use rustc_hash::FxHashSet;

use crate::events::{Events, ItemKey};
use crate::py_cache::classes;

mod amounts;
mod given;
mod identity;
mod mapping;
mod place;

/// A recorded event.
#[pyclass(
    frozen,
    mapping,
    name = "FunctionEvent",
    module = "mindprof.profiler_util"
)]
pub(crate) struct FunctionEvent {
    store: Py<Events>,
    item: Item,
}

impl FunctionEvent {
    pub(crate) const fn new(store: Py<Events>, item: Item) -> Self {
        Self { store, item }
    }

    pub(crate) fn store<'py>(&self, py: Python<'py>) -> Bound<'py, Events> {
        self.store.bind(py).clone()
    }

    pub(crate) fn key(&self) -> ItemKey {
        match self.item {
            Item::Event(id) => (false, id.to_raw()),
            Item::Memory(record) => (true, record),
        }
    }

    fn analysis(&self) -> &Analysis {
        &self.store.get().analyzed.analysis
    }

    /// Returns the event; none of a memory record or of the moment at which there was none to be
    /// had, which torch makes of its records alike.
    fn recorded(&self) -> Option<(EventId, &Event)> {
        let is_record = |id| self.analysis().is_out_of_memory(id);
        self.event().filter(|&(id, _)| !is_record(id))
    }

    /// Returns the event; none of a memory record.
    fn event(&self) -> Option<(EventId, &Event)> {
        match self.item {
            Item::Event(id) => Some((id, self.analysis().profile().event(id))),
            Item::Memory(_) => None,
        }
    }

    /// Returns when it began and ended.
    fn interval(&self) -> (Nanos, Nanos) {
        match self.item {
            Item::Event(id) => {
                let event = self.analysis().profile().event(id);
                (event.start, event.end())
            }
            Item::Memory(record) => {
                let time = self.analysis().profile().memory().time(record as usize);
                (time, time)
            }
        }
    }

    fn links(&self) -> Links {
        let (Some((id, _)), profile) = (self.event(), self.analysis().profile()) else {
            return Links::default();
        };
        profile.links(id).unwrap_or_default()
    }

    fn inputs(&self) -> InputsIter<'_> {
        let inputs = self
            .event()
            .map_or(InputsId::NONE, |(_, event)| event.inputs);
        self.analysis().profile().inputs().inputs(inputs)
    }

    fn device(&self) -> DeviceKind {
        self.event()
            .map_or(DeviceKind::Cpu, |(id, _)| self.analysis().device(id))
    }

    fn is(&self, category: Category) -> bool {
        self.event()
            .is_some_and(|(_, event)| event.category == category)
    }

    fn memory(&self) -> Bytes {
        match self.item {
            Item::Event(id) => self.analysis().memory().total(id),
            Item::Memory(record) => {
                Bytes::of(&self.analysis().profile().memory().at(record as usize))
            }
        }
    }

    fn own_memory(&self) -> Bytes {
        match self.item {
            Item::Event(id) => self.analysis().memory().own(id),
            Item::Memory(_) => self.memory(),
        }
    }

    fn flow_end(&self) -> Option<FlowEnd> {
        let (id, event) = self.event()?;
        self.analysis().flows().end_at(id, event)
    }

    fn python_call(&self) -> Option<PythonCall> {
        let (id, event) = self.event()?;
        // Others have no numbers either, but asking would number all calls.
        let is_call = event.category == Category::PythonFunction;
        is_call.then(|| self.analysis().python_call(id)).flatten()
    }

    fn handle<'py>(&self, py: Python<'py>, id: EventId) -> PyResult<Bound<'py, Self>> {
        Events::handle(&self.store, py, Item::Event(id))
    }
}

/// Has Python's collector follow a handle from now on.
fn follow(handle: &Bound<'_, FunctionEvent>) {
    // SAFETY: the handle lives, the GIL is held, and its type is one that the collector follows; it
    // is asked first, because an object is to be shown to it once.
    unsafe {
        if ffi::PyObject_GC_IsTracked(handle.as_ptr()) == 0 {
            ffi::PyObject_GC_Track(handle.as_ptr().cast());
        }
    }
}

/// So many objects are looked at for handles in what a user sets.
const MOST_LOOKED_AT: usize = 100_000;

/// Has Python's collector follow the handles that `value` leads to, so that a circle through them
/// can be found. Classes, modules and functions are not looked into: they lead everywhere.
fn follow_all(value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = value.py();
    let leads_on = |object: &Bound<'_, PyAny>| {
        // SAFETY: the object lives and the GIL is held. What the collector does not follow, handles
        // apart, leads to nothing that it could.
        let is_followed = unsafe { ffi::PyObject_GC_IsTracked(object.as_ptr()) } == 1;
        is_followed
            && !(object.is_instance_of::<PyType>()
                || object.is_instance_of::<PyModule>()
                || object.is_instance_of::<PyFunction>())
    };
    if let Ok(handle) = value.cast::<FunctionEvent>() {
        follow(handle);
        return Ok(());
    }
    if !leads_on(value) {
        return Ok(());
    }
    let referents = py.import("gc")?.getattr("get_referents")?;
    let mut seen: FxHashSet<usize> = FxHashSet::default();
    let mut next = vec![value.clone()];
    while let Some(object) = next.pop() {
        if let Ok(handle) = object.cast::<FunctionEvent>() {
            follow(handle);
            continue;
        }
        if !leads_on(&object) || !seen.insert(object.as_ptr().addr()) {
            continue;
        }
        if seen.len() > MOST_LOOKED_AT {
            break;
        }
        for found in referents.call1((object,))?.try_iter()? {
            next.push(found?);
        }
    }
    Ok(())
}

#[pymethods]
impl FunctionEvent {
    fn __getattribute__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        if let Some(set) = this.store.get().change(slf.py(), this.key())
            && let Some(value) = set.get_item(name)?
        {
            return Ok(value);
        }
        // SAFETY: both are live objects; the call returns a new reference, or null with an
        // exception set.
        unsafe {
            let found = ffi::PyObject_GenericGetAttr(slf.as_ptr(), name.as_ptr());
            Bound::from_owned_ptr_or_err(slf.py(), found)
        }
    }

    /// Looks up on the Python class what the profile does not know.
    fn __getattr__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let class = classes(py)?.function_event.bind(py);
        let text = name.to_str()?;
        let found = match class.getattr_opt(name)? {
            Some(found) if !text.starts_with("__") => found,
            _ => {
                let message = format!("'FunctionEvent' object has no attribute '{text}'");
                return Err(PyAttributeError::new_err(message));
            }
        };
        match found.getattr_opt("__get__")? {
            Some(get) => get.call1((slf, class)),
            None => Ok(found),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.store)
    }

    fn __setattr__(
        slf: &Bound<'_, Self>,
        name: &Bound<'_, PyString>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        follow(slf);
        follow_all(value)?;
        let this = slf.get();
        let set = this.store.get().change_mut(slf.py(), this.key());
        set.set_item(name, value)
    }

    fn __delattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        let this = slf.get();
        let missing = || PyAttributeError::new_err(name.to_string());
        let set = this
            .store
            .get()
            .change(slf.py(), this.key())
            .ok_or_else(missing)?;
        set.del_item(name).map_err(|_| missing())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else {
            return false;
        };
        let other = other.get();
        self.store.as_ptr() == other.store.as_ptr() && self.item == other.item
    }

    fn __hash__(&self) -> u64 {
        let (memory, index) = self.key();
        (u64::from(memory) << 32 | u64::from(index)) ^ (self.store.as_ptr() as u64).rotate_left(17)
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let class = classes(slf.py())?.function_event.bind(slf.py());
        class.getattr("__repr__")?.call1((slf,))
    }

    /// The class that hand-made events are of, so that `isinstance` holds.
    #[getter(__class__)]
    #[expect(clippy::unused_self, reason = "a getter takes it")]
    fn class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(classes(py)?.function_event.bind(py).clone())
    }
}
