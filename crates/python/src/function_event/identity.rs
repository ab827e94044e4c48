//! The identity of an event (ids, names, threads, devices) and its links to other events.

#![expect(
    clippy::unused_self,
    reason = "getters need `self`, even if the value is the same for all events"
)]

use mindprof_analyze::{FlowKind, FlowSide, Item, Keys, event_number};
use mindprof_formats::external_id;
use mindprof_model::{Category, Flags, activity_name};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::FunctionEvent;
use crate::averages::microseconds;
use crate::events::item_name;
use crate::names::{device_name, device_type, scope_number};
use crate::py_cache::classes;

/// Kineto's names for the work of a device's profiler itself, whose activity type is not recorded.
const OVERHEAD: [&str; 9] = [
    "Activity Buffer Request",
    "Buffer Flush",
    "Command Buffer Full",
    "Driver Compiler",
    "Instrumentation",
    "Lazy Function Loading",
    "Resource",
    "Runtime Triggered Module Loading",
    "UVM Activity Init",
];

#[pymethods]
impl FunctionEvent {
    #[getter]
    fn id(&self) -> u32 {
        match self.recorded() {
            Some((id, _)) => event_number(self.analysis(), id),
            None => self.store.get().memory_number(self.item),
        }
    }

    #[getter]
    pub(super) fn name(&self) -> &str {
        Keys::text(item_name(self.store.get(), self.item))
    }

    /// The name, including one that the user has set.
    #[getter(key)]
    fn key_text<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr("name")
    }

    #[getter]
    fn trace_name(&self) -> Option<&str> {
        self.recorded()
            .map(|_| item_name(self.store.get(), self.item))
    }

    #[getter]
    pub(super) fn overload_name(&self) -> &str {
        let overload = self
            .event()
            .and_then(|(id, _)| self.analysis().profile().overload(id));
        overload.unwrap_or_default()
    }

    #[getter]
    pub(super) fn thread(&self) -> u32 {
        match self.item {
            Item::Event(id) => self.analysis().thread_number(id),
            Item::Memory(record) => {
                let record = self.analysis().profile().memory().at(record as usize);
                self.analysis().memory_thread_number(&record)
            }
        }
    }

    #[getter]
    fn fwd_thread(&self) -> u32 {
        match self.recorded() {
            Some((id, _)) => self.analysis().forward_thread_number(id),
            None => self.thread(),
        }
    }

    #[getter]
    pub(super) fn sequence_nr(&self) -> i64 {
        let sequence = self.event().and_then(|(_, event)| event.sequence());
        sequence.map_or(-1, i64::from)
    }

    #[getter]
    fn node_id(&self) -> i8 {
        -1
    }

    #[getter]
    pub(super) fn scope(&self) -> u8 {
        self.event()
            .map_or(0, |(_, event)| scope_number(event.scope))
    }

    #[getter]
    pub(super) fn activity_type(&self) -> Option<&'static str> {
        let (_, event) = self.recorded()?;
        let analysis = self.analysis();
        let name = analysis.profile().name(event);
        if event.category == Category::Other && OVERHEAD.contains(&name) {
            return Some("overhead");
        }
        Some(activity_name(event.category, name, analysis.accelerator()))
    }

    #[getter]
    pub(super) fn external_id(&self) -> u32 {
        let recorded = self.recorded();
        recorded.map_or(0, |(id, _)| external_id(self.analysis(), id))
    }

    #[getter]
    pub(super) fn linked_correlation_id(&self) -> u32 {
        if self.is(Category::Kernel) || self.is(Category::Runtime) {
            return self.links().external;
        }
        0
    }

    #[getter]
    fn device_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        device_type(py, self.device())
    }

    #[getter]
    pub(super) fn device_index(&self) -> u64 {
        let threads = self.analysis().profile().threads();
        self.recorded()
            .map_or(0, |(_, event)| threads[event.thread.index()].process)
    }

    #[getter]
    pub(super) fn device_resource_id(&self) -> u64 {
        let threads = self.analysis().profile().threads();
        match self.recorded() {
            Some((_, event)) => threads[event.thread.index()].native,
            None => u64::from(self.thread()),
        }
    }

    #[getter]
    fn use_device(&self) -> Option<&'static str> {
        self.analysis().accelerator().map(device_name)
    }

    #[getter]
    pub(super) fn is_async(&self) -> bool {
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
    pub(super) fn is_user_annotation(&self) -> bool {
        self.event()
            .is_some_and(|(id, _)| self.analysis().is_annotation(id))
    }

    #[getter]
    pub(super) fn is_python_function(&self) -> bool {
        self.is(Category::PythonFunction)
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
    fn kernels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let Some((id, _)) = self.event() else {
            return Ok(list);
        };
        let kernel = classes(py)?.kernel.bind(py);
        let profile = self.analysis().profile();
        for &found in self.analysis().kernels(id) {
            let event = profile.event(found);
            let device = profile.threads()[event.thread.index()].process;
            let elapsed = microseconds(event.duration);
            list.append(kernel.call1((profile.name(event), device, elapsed))?)?;
        }
        Ok(list)
    }

    /// `None` for a memory record, as in torch; the same holds for the other two.
    #[getter(flow_id)]
    fn shown_flow_id(&self) -> Option<u32> {
        self.recorded().map(|_| self.flow_id())
    }

    #[getter(flow_type)]
    fn shown_flow_type(&self) -> Option<u8> {
        self.recorded().map(|_| self.flow_type())
    }

    #[getter(flow_start)]
    fn shown_flow_start(&self) -> Option<bool> {
        self.recorded().map(|_| self.flow_start())
    }

    #[getter]
    pub(super) fn python_id(&self) -> i64 {
        self.python_call().map_or(-1, |call| call.number.into())
    }

    #[getter]
    pub(super) fn python_parent_id(&self) -> i64 {
        let caller = self.python_call().and_then(|call| call.caller);
        caller.map_or(-1, i64::from)
    }

    #[getter]
    pub(super) fn python_module_id(&self) -> i64 {
        let module = self.python_call().and_then(|call| call.module);
        module.map_or(-1, i64::from)
    }
}

impl FunctionEvent {
    pub(super) fn flow_id(&self) -> u32 {
        self.flow_end().map_or(0, |end| end.number)
    }

    pub(super) fn flow_type(&self) -> u8 {
        self.flow_end().map_or(0, |end| match end.kind {
            FlowKind::Backward => 1,
            FlowKind::Launch => 2,
        })
    }

    pub(super) fn flow_start(&self) -> bool {
        self.flow_end()
            .is_some_and(|end| end.side == FlowSide::Tail)
    }
}
