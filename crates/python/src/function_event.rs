//! `FunctionEvent`: one recorded event with torch's attributes, read from the profile on access.
//!
//! The submodules define the attributes by subject. Derived attributes and torch's methods live on
//! the Python class of the same name, where every attribute that is missing here is looked up.

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
mod collective;
mod given;
mod identity;
mod kineto_event;
mod mapping;
mod place;

pub(crate) use self::kineto_event::KinetoEvent;

/// A handle of a recorded event: its store, and its place in the store.
///
/// `Events` creates handles when Python looks at an event. Values that a user sets on a handle are
/// kept by the store, so that every handle of the same event shows them.
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

    /// Returns the event, or `None` for a memory record and for a failed allocation, which torch
    /// treats as a memory record.
    fn recorded(&self) -> Option<(EventId, &Event)> {
        let is_record = |id| self.analysis().is_out_of_memory(id);
        self.event().filter(|&(id, _)| !is_record(id))
    }

    /// Returns the event, or `None` for a memory record.
    fn event(&self) -> Option<(EventId, &Event)> {
        match self.item {
            Item::Event(id) => Some((id, self.analysis().profile().event(id))),
            Item::Memory(_) => None,
        }
    }

    /// Returns the start and the end. For a memory record they are equal.
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
        // No other category has call numbers, and asking for one would number all calls.
        let is_call = event.category == Category::PythonFunction;
        is_call.then(|| self.analysis().python_call(id)).flatten()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.store.as_ptr() == other.store.as_ptr() && self.item == other.item
    }

    fn hash(&self) -> u64 {
        let (memory, index) = self.key();
        (u64::from(memory) << 32 | u64::from(index)) ^ (self.store.as_ptr() as u64).rotate_left(17)
    }

    fn handle<'py>(&self, py: Python<'py>, id: EventId) -> PyResult<Bound<'py, Self>> {
        Events::handle(&self.store, py, Item::Event(id))
    }
}

/// Lets Python's garbage collector track a handle from now on.
fn follow(handle: &Bound<'_, FunctionEvent>) {
    // SAFETY: the reference keeps the handle alive, the GIL is held, and the type supports garbage
    // collection because it has `__traverse__`. An object must not be tracked twice, which the
    // check before prevents.
    unsafe {
        if ffi::PyObject_GC_IsTracked(handle.as_ptr()) == 0 {
            ffi::PyObject_GC_Track(handle.as_ptr().cast());
        }
    }
}

/// The maximum number of objects that are searched for handles in a value that a user sets.
const MOST_LOOKED_AT: usize = 100_000;

/// Lets Python's garbage collector track all handles reachable from `value`, so that it can find
/// reference cycles through them. Classes, modules and functions are not searched, because almost
/// everything is reachable from them.
fn follow_all(value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = value.py();
    let leads_on = |object: &Bound<'_, PyAny>| {
        // SAFETY: the reference keeps the object alive and the GIL is held. Objects that are not
        // tracked, except for handles, cannot be part of a cycle.
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
        // SAFETY: both references keep their objects alive and the GIL is held; the call returns a
        // new reference, or null with an exception set.
        unsafe {
            let found = ffi::PyObject_GenericGetAttr(slf.as_ptr(), name.as_ptr());
            Bound::from_owned_ptr_or_err(slf.py(), found)
        }
    }

    /// Looks up attributes that the profile does not provide on the Python class.
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
        self.is_same(other.get())
    }

    fn __hash__(&self) -> u64 {
        self.hash()
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let class = classes(slf.py())?.function_event.bind(slf.py());
        class.getattr("__repr__")?.call1((slf,))
    }

    /// A new dictionary of the attributes that torch's events have, for `vars(event)`.
    #[getter(__dict__)]
    fn attributes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let class = classes(slf.py())?.function_event.bind(slf.py());
        class.call_method1("_attributes", (slf,))
    }

    /// The Python class, which events made by hand are instances of, so that `isinstance` holds.
    #[getter(__class__)]
    #[expect(clippy::unused_self, reason = "a getter takes it")]
    fn class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(classes(py)?.function_event.bind(py).clone())
    }
}
