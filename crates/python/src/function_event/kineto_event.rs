//! `_KinetoEvent`: one recorded event with the accessors of torch's raw results.
//!
//! `kineto_results.events()` of a profiler yields these objects. Values that a user sets on an
//! event do not change them.

#![expect(
    clippy::unused_self,
    reason = "accessors need `self`, even if the value is the same for all events"
)]

use mindprof_analyze::{Item, event_number};
use mindprof_model::{Flags, MemoryRecord, StackId};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::{PyTraverseError, PyVisit};

use super::FunctionEvent;
use super::collective::COLLECTIVE;
use crate::averages::text_list;
use crate::error::ProfilerError;
use crate::events::{Events, item_name};
use crate::names::device_type;

/// torch's value for times that only its older recorders measured.
const NOT_MEASURED: i64 = -1;

/// An event of a recording as torch's collector would list it: memory records are events too.
///
/// [`Events`] creates one for each access.
#[pyclass(frozen, name = "_KinetoEvent", module = "mindprof._core")]
pub(crate) struct KinetoEvent {
    event: FunctionEvent,
}

impl KinetoEvent {
    pub(crate) const fn new(store: Py<Events>, item: Item) -> Self {
        Self {
            event: FunctionEvent::new(store, item),
        }
    }

    fn memory(&self) -> Option<MemoryRecord> {
        match self.event.item {
            Item::Event(_) => None,
            Item::Memory(record) => {
                let records = self.event.analysis().profile().memory();
                Some(records.at(record as usize))
            }
        }
    }

    fn unix_ns(&self, since_zero: u64) -> u64 {
        let zero = self.event.analysis().profile().reference_unix_ns();
        zero.saturating_add(since_zero)
    }

    /// Returns what is recorded of a collective. Other events have nothing, as in torch.
    ///
    /// # Errors
    /// If it is a collective whose arguments are unknown: torch always has them.
    fn told<'py>(
        &self,
        accessor: &str,
        found: Option<Bound<'py, PyDict>>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        if found.is_none() && self.name() == COLLECTIVE {
            return Err(ProfilerError::new_err(format!(
                "{accessor}() of this {COLLECTIVE} is not recorded: \
                 record collectives with torch's own profiler"
            )));
        }
        Ok(found.unwrap_or_else(|| PyDict::new(py)))
    }
}

#[pymethods]
impl KinetoEvent {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event.store)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else {
            return false;
        };
        self.event.is_same(&other.get().event)
    }

    fn __hash__(&self) -> u64 {
        self.event.hash()
    }

    fn name(&self) -> &str {
        item_name(self.event.store.get(), self.event.item)
    }

    fn overload_name(&self) -> &str {
        self.event.overload_name()
    }

    fn start_thread_id(&self) -> u32 {
        self.event.thread()
    }

    fn end_thread_id(&self) -> PyResult<u32> {
        if self.event.is_async() {
            return Err(ProfilerError::new_err(format!(
                "end_thread_id() of {:?} is not recorded: it ended on another thread, \
                 use start_thread_id()",
                self.name()
            )));
        }
        Ok(self.event.thread())
    }

    fn fwd_thread_id(&self) -> u32 {
        let node = self.event.recorded();
        let node = node.filter(|(_, event)| event.sequence().is_some());
        node.map_or(0, |(id, _)| self.event.analysis().forward_thread_number(id))
    }

    fn sequence_nr(&self) -> i64 {
        self.event.sequence_nr()
    }

    fn start_ns(&self) -> u64 {
        self.unix_ns(self.event.interval().0.0)
    }

    fn end_ns(&self) -> u64 {
        self.unix_ns(self.event.interval().1.0)
    }

    fn duration_ns(&self) -> u64 {
        let (start, end) = self.event.interval();
        end.0.saturating_sub(start.0)
    }

    fn correlation_id(&self) -> u32 {
        let recorded = self.event.recorded();
        recorded.map_or(0, |(id, _)| event_number(self.event.analysis(), id))
    }

    fn shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.event.input_shapes(py)
    }

    fn dtypes(&self) -> Vec<&'static str> {
        self.event.input_dtypes()
    }

    fn concrete_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.event.concrete_inputs(py)
    }

    fn kwinputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.event.kwinputs(py)
    }

    fn structured_input_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.event.structured_input_shapes(py)
    }

    fn structured_input_strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.event.structured_input_strides(py)
    }

    /// Returns all frames of the event's own stack, innermost first.
    fn stack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let profile = self.event.analysis().profile();
        let stack = match (self.event.event(), self.memory()) {
            (Some((_, event)), _) => event.stack,
            (None, Some(record)) => record.stack,
            (None, None) => StackId::NONE,
        };
        let frames = profile.stacks().frames(stack);
        text_list(py, frames.map(|frame| profile.strings().text(frame)))
    }

    fn scope(&self) -> u8 {
        self.event.scope()
    }

    fn device_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let memory = self.memory();
        device_type(
            py,
            memory.map_or(self.event.device(), |record| record.device),
        )
    }

    fn device_index(&self) -> i64 {
        match self.memory() {
            Some(record) => record.device_index.into(),
            None => self.event.device_index() as i64,
        }
    }

    fn device_resource_id(&self) -> u64 {
        match self.memory() {
            Some(record) => {
                let threads = self.event.analysis().profile().threads();
                threads[record.thread.index()].native
            }
            None => self.event.device_resource_id(),
        }
    }

    fn linked_correlation_id(&self) -> u32 {
        self.event.linked_correlation_id()
    }

    fn external_id(&self) -> u32 {
        self.event.external_id()
    }

    fn flow_id(&self) -> u32 {
        self.event.flow_id()
    }

    fn flow_type(&self) -> u8 {
        self.event.flow_type()
    }

    fn flow_start(&self) -> bool {
        self.event.flow_start()
    }

    fn flops(&self) -> u64 {
        self.event.flops().unwrap_or(0)
    }

    fn nbytes(&self) -> i64 {
        self.memory().map_or(0, |record| record.bytes)
    }

    fn cuda_elapsed_us(&self) -> i64 {
        NOT_MEASURED
    }

    fn privateuse1_elapsed_us(&self) -> i64 {
        NOT_MEASURED
    }

    fn is_async(&self) -> bool {
        self.event.is_async()
    }

    fn is_hidden_event(&self) -> bool {
        let event = self.event.event();
        event.is_some_and(|(_, event)| event.flags.contains(Flags::HIDDEN))
    }

    fn is_python_function(&self) -> bool {
        self.event.is_python_function()
    }

    fn is_user_annotation(&self) -> bool {
        self.event.is_user_annotation()
    }

    fn activity_type(&self) -> &'static str {
        self.event.activity_type().unwrap_or("cpu_instant_event")
    }

    /// Returns an empty text: the collector's own metadata is not recorded.
    fn metadata_json(&self) -> &'static str {
        ""
    }

    fn extra_meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.told("extra_meta", self.event.collective_texts(py)?, py)
    }

    fn typed_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.told("typed_metadata", self.event.collective_arguments(py)?, py)
    }

    fn python_id(&self) -> i64 {
        self.event.python_id()
    }

    fn python_parent_id(&self) -> i64 {
        self.event.python_parent_id()
    }

    fn python_module_id(&self) -> i64 {
        self.event.python_module_id()
    }

    fn __repr__(&self) -> String {
        format!("<_KinetoEvent {}>", self.name())
    }
}
