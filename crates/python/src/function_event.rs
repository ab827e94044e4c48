//! One recorded event as Python sees it: torch's attributes, read from the profile when they are asked for.
//!
//! What follows from these attributes by torch's rules, and torch's methods, are those of the Python class of the same
//! name: whatever is not found here is looked up there.

#![expect(
    unsafe_code,
    reason = "the generic attribute lookup of Python has no safe wrapper in PyO3"
)]
#![expect(
    clippy::unused_self,
    reason = "a getter takes it, also where it says the same of every event"
)]

use mindprof_analyze::{Analysis, Bytes, Item, Keys, elapsed_micros, module_number, shown_frames};
use mindprof_formats::{category_name, input_types};
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Flags, InputsId, InputsIter, Links, StackId,
};
use pyo3::exceptions::PyAttributeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString};

use crate::averages::{microseconds, text_list};
use crate::events::{Events, ItemKey, item_name};
use crate::inputs::{Part, shapes, structured, values};
use crate::names::{class, device_name, device_type, scope_number};

/// A recorded event.
#[pyclass(frozen, name = "FunctionEvent", module = "mindprof.profiler_util")]
pub(crate) struct FunctionEvent {
    store: Py<Events>,
    item: Item,
}

impl FunctionEvent {
    pub(crate) const fn new(store: Py<Events>, item: Item) -> Self {
        Self { store, item }
    }

    /// Returns a number that calls of Python functions have; -1 of what is no call or has none.
    fn call_number(&self, find: impl FnOnce(EventId) -> Option<u32>) -> i64 {
        let call = self.event().filter(|_| self.is(Category::PythonFunction));
        call.and_then(|(id, _)| find(id)).map_or(-1, i64::from)
    }

    fn key(&self) -> ItemKey {
        match self.item {
            Item::Event(id) => (false, id.to_raw()),
            Item::Memory(record) => (true, record),
        }
    }

    fn analysis(&self) -> &Analysis {
        &self.store.get().analyzed.analysis
    }

    /// Returns the event; none of a memory record.
    fn event(&self) -> Option<(EventId, &Event)> {
        match self.item {
            Item::Event(id) => Some((id, self.analysis().profile().event(id))),
            Item::Memory(_) => None,
        }
    }

    fn links(&self) -> Links {
        let (Some((id, _)), profile) = (self.event(), self.analysis().profile()) else {
            return Links::default();
        };
        profile.links(id).copied().unwrap_or_default()
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
            Item::Memory(record) => Bytes::of(&self.analysis().profile().memory()[record as usize]),
        }
    }

    fn own_memory(&self) -> Bytes {
        match self.item {
            Item::Event(id) => self.analysis().memory().own(id),
            Item::Memory(_) => self.memory(),
        }
    }

    fn handle<'py>(&self, py: Python<'py>, id: EventId) -> PyResult<Bound<'py, Self>> {
        Events::handle(&self.store, py, Item::Event(id))
    }
}

static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static INTERVAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static KERNEL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

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
        // SAFETY: both are live objects; the call returns a new reference, or null with an exception set.
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
        let class = class(py, &CLASS, "FunctionEvent")?;
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

    fn __setattr__(
        slf: &Bound<'_, Self>,
        name: &Bound<'_, PyString>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
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
        let class = class(slf.py(), &CLASS, "FunctionEvent")?;
        class.getattr("__repr__")?.call1((slf,))
    }

    /// The class that hand-made events are of, so that `isinstance` holds.
    #[getter(__class__)]
    fn class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(class(py, &CLASS, "FunctionEvent")?.clone())
    }

    #[getter]
    fn id(&self) -> u32 {
        let links = self.links();
        match self.event() {
            Some((_, event)) if event.category == Category::PythonFunction => 0,
            Some((_, event)) if matches!(event.category, Category::Kernel | Category::Runtime) => {
                links.correlation
            }
            Some((id, _)) if links.external == 0 => id.to_raw() + 1,
            Some(_) => links.external,
            None => 0,
        }
    }

    #[getter]
    fn name(&self) -> &str {
        Keys::text(item_name(self.store.get(), self.item))
    }

    /// The name, also where one was set.
    #[getter(key)]
    fn key_text<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr("name")
    }

    #[getter]
    fn trace_name(&self) -> Option<&str> {
        self.event().map(|_| item_name(self.store.get(), self.item))
    }

    #[getter]
    fn overload_name(&self) -> &'static str {
        ""
    }

    #[getter]
    fn count(&self) -> u8 {
        1
    }

    #[getter]
    fn time_range<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (start, end) = match self.item {
            Item::Event(id) => {
                let event = self.analysis().profile().event(id);
                (event.start, event.end())
            }
            Item::Memory(record) => {
                let time = self.analysis().profile().memory()[record as usize].time;
                (time, time)
            }
        };
        class(py, &INTERVAL, "Interval")?.call1((microseconds(start), microseconds(end)))
    }

    #[getter]
    fn thread(&self) -> u32 {
        match self.item {
            Item::Event(id) => self.analysis().thread_number(id),
            Item::Memory(record) => {
                let record = &self.analysis().profile().memory()[record as usize];
                self.analysis().memory_thread_number(record)
            }
        }
    }

    #[getter]
    fn fwd_thread(&self) -> u32 {
        match self.item {
            Item::Event(id) => self.analysis().forward_thread_number(id),
            Item::Memory(_) => self.thread(),
        }
    }

    #[getter]
    fn kernels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let Some((id, _)) = self.event() else {
            return Ok(list);
        };
        let kernel = class(py, &KERNEL, "Kernel")?;
        let profile = self.analysis().profile();
        for &found in self.analysis().kernels(id) {
            let event = profile.event(found);
            let device = profile.threads()[event.thread.index()].process;
            let elapsed = microseconds(event.duration);
            list.append(kernel.call1((profile.name(event), device, elapsed))?)?;
        }
        Ok(list)
    }

    #[getter]
    fn cpu_children<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, Self>>> {
        let Some((id, _)) = self.event() else {
            return Ok(Vec::new());
        };
        let children = self.analysis().children().of(id).iter();
        children.map(|&child| self.handle(py, child)).collect()
    }

    #[getter]
    fn cpu_parent<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Self>>> {
        let parent = self
            .event()
            .and_then(|(id, _)| self.analysis().tree().parent(id));
        parent.map(|parent| self.handle(py, parent)).transpose()
    }

    #[getter]
    fn input_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        shapes(py, self.inputs())
    }

    #[getter]
    fn structured_input_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        structured(py, self.inputs(), Part::Dims)
    }

    #[getter]
    fn structured_input_strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        structured(py, self.inputs(), Part::Strides)
    }

    #[getter]
    fn input_dtypes(&self) -> Vec<&'static str> {
        input_types(self.inputs())
    }

    #[getter]
    fn concrete_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        values(py, self.inputs())
    }

    #[getter]
    fn kwinputs<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        PyDict::new(py)
    }

    #[getter]
    fn stack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let stack = self
            .event()
            .map_or(StackId::NONE, |(id, _)| self.analysis().stack(id));
        let profile = self.analysis().profile();
        let frames = shown_frames(profile, stack);
        text_list(py, frames.map(|frame| profile.strings().text(frame)))
    }

    #[getter]
    fn scope(&self) -> u8 {
        self.event()
            .map_or(0, |(_, event)| scope_number(event.scope))
    }

    #[getter]
    fn use_device(&self) -> Option<&'static str> {
        self.analysis().accelerator().map(device_name)
    }

    #[getter]
    fn cpu_memory_usage(&self) -> i64 {
        self.memory().host
    }

    #[getter]
    fn device_memory_usage(&self) -> i64 {
        self.memory().device
    }

    #[getter]
    fn self_cpu_memory_usage(&self) -> i64 {
        self.own_memory().host
    }

    #[getter]
    fn self_device_memory_usage(&self) -> i64 {
        self.own_memory().device
    }

    #[getter]
    fn cpu_time_total(&self) -> f64 {
        match self.event() {
            Some((_, event)) if self.device() == DeviceKind::Cpu => elapsed_micros(event),
            Some(_) | None => 0.0,
        }
    }

    #[getter]
    fn self_cpu_time_total(&self) -> f64 {
        match self.event() {
            Some((id, _)) => microseconds(self.analysis().tree().self_time(id)),
            None => 0.0,
        }
    }

    #[getter]
    fn device_time_total(&self) -> f64 {
        match self.event() {
            Some((id, _)) if self.device() == DeviceKind::Cpu => {
                self.analysis().device_times().total_micros(id)
            }
            Some((_, event)) => elapsed_micros(event),
            None => 0.0,
        }
    }

    #[getter]
    fn self_device_time_total(&self) -> f64 {
        match self.event() {
            Some((id, _)) if self.device() == DeviceKind::Cpu => {
                microseconds(self.analysis().device_times().own(id))
            }
            Some((_, event)) => microseconds(event.duration),
            None => 0.0,
        }
    }

    #[getter]
    fn flops(&self) -> Option<u64> {
        self.event().map(|(id, _)| self.store.get().flops(id))
    }

    #[getter]
    fn is_async(&self) -> bool {
        self.event()
            .is_some_and(|(_, event)| event.flags.contains(Flags::ASYNC))
    }

    #[getter]
    fn is_remote(&self) -> bool {
        false
    }

    #[getter]
    fn is_legacy(&self) -> bool {
        false
    }

    #[getter]
    fn is_user_annotation(&self) -> bool {
        self.event()
            .is_some_and(|(id, _)| self.analysis().is_annotation(id))
    }

    #[getter]
    fn is_python_function(&self) -> bool {
        self.is(Category::PythonFunction)
    }

    #[getter]
    fn python_id(&self) -> i64 {
        self.call_number(|id| self.analysis().python_calls().number(id))
    }

    #[getter]
    fn python_parent_id(&self) -> i64 {
        self.call_number(|id| self.analysis().python_calls().caller(id))
    }

    #[getter]
    fn python_module_id(&self) -> i64 {
        let profile = self.analysis().profile();
        self.call_number(|id| module_number(profile.name(profile.event(id))))
    }

    #[getter]
    fn sequence_nr(&self) -> i64 {
        let sequence = self.event().and_then(|(_, event)| event.sequence());
        sequence.map_or(-1, i64::from)
    }

    #[getter]
    fn node_id(&self) -> i8 {
        -1
    }

    #[getter]
    fn device_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        device_type(py, self.device())
    }

    #[getter]
    fn device_index(&self) -> u64 {
        let threads = self.analysis().profile().threads();
        self.event()
            .map_or(0, |(_, event)| threads[event.thread.index()].process)
    }

    #[getter]
    fn device_resource_id(&self) -> u64 {
        let threads = self.analysis().profile().threads();
        match self.event() {
            Some((_, event)) => threads[event.thread.index()].native,
            None => u64::from(self.thread()),
        }
    }

    #[getter]
    fn activity_type(&self) -> Option<&'static str> {
        let (_, event) = self.event()?;
        let analysis = self.analysis();
        let name = analysis.profile().name(event);
        Some(category_name(event.category, name, analysis.accelerator()))
    }

    #[getter]
    fn external_id(&self) -> u32 {
        if matches!(self.device(), DeviceKind::Cpu) && !self.is(Category::Runtime) {
            return self.id();
        }
        self.links().external
    }

    #[getter]
    fn linked_correlation_id(&self) -> u32 {
        if self.is(Category::Kernel) || self.is(Category::Runtime) {
            return self.links().external;
        }
        0
    }
}
