//! The event as a mapping with `MindTorch` v2's keys: `event["name"]`, `"stack" in event`,
//! `dict(event)`.
//!
//! Items always come from the recording; values that a user sets change only attributes. The
//! methods `keys`, `values`, `items` and `get` come from the Python class
//! (`mindprof._results.event_keys`), which implements the same mapping for events made by hand.

use mindprof_analyze::{Item, event_number};
use mindprof_model::{Category, DeviceKind, InputsId, Nanos};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyString};

use super::FunctionEvent;
use crate::names::device_type;

/// All keys, in iteration order.
const KEYS: [&str; 14] = [
    "name",
    "kind",
    "device_type",
    "start_ns",
    "end_ns",
    "duration_ns",
    "step",
    "thread_id",
    "input_shapes",
    "stack",
    "correlation_id",
    "cpu_memory_allocated_before",
    "cpu_memory_allocated_after",
    "cpu_memory_allocated_delta",
];

/// The number of leading keys that every event has. The others exist if their data was recorded.
const ALWAYS: usize = 8;

#[pymethods]
impl FunctionEvent {
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let missing = || PyKeyError::new_err((key.clone().unbind(),));
        let known = key.cast::<PyString>().map_err(|_| missing())?;
        self.value(py, known.to_str()?)?.ok_or_else(missing)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        match key.cast::<PyString>() {
            Ok(key) => Ok(self.has(key.to_str()?)),
            Err(_) => Ok(false),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.keys_present())?.try_iter()
    }

    fn __len__(&self) -> usize {
        self.keys_present().count()
    }
}

impl FunctionEvent {
    fn keys_present(&self) -> impl Iterator<Item = &'static str> {
        KEYS.into_iter().filter(|key| self.has(key))
    }

    fn has(&self, key: &str) -> bool {
        match key {
            "input_shapes" => self
                .event()
                .is_some_and(|(_, event)| event.inputs != InputsId::NONE),
            "stack" => self.shown_frames().next().is_some(),
            "correlation_id" => self.correlation_id().is_some(),
            _ if key.starts_with("cpu_memory_allocated_") => {
                KEYS.contains(&key)
                    && self.device() == DeviceKind::Cpu
                    && self.analysis().has_memory()
            }
            _ => KEYS[..ALWAYS].contains(&key),
        }
    }

    fn value<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.has(key) {
            return Ok(None);
        }
        let (start, end) = self.interval();
        let value = match key {
            "name" => self.name().into_bound_py_any(py),
            "kind" => self.kind().into_bound_py_any(py),
            "device_type" => device_type(py, self.device())?.getattr("name"),
            "start_ns" => start.0.into_bound_py_any(py),
            "end_ns" => end.0.into_bound_py_any(py),
            "duration_ns" => end.saturating_sub(start).0.into_bound_py_any(py),
            "step" => self.step(start).into_bound_py_any(py),
            "thread_id" => self.thread_id().into_bound_py_any(py),
            "input_shapes" => self.input_shapes(py)?.into_bound_py_any(py),
            "stack" => self.stack(py)?.into_bound_py_any(py),
            "correlation_id" => self.correlation_id().into_bound_py_any(py),
            "cpu_memory_allocated_before" => self.allocated_before(start).into_bound_py_any(py),
            "cpu_memory_allocated_after" => self.allocated_after(end).into_bound_py_any(py),
            _ => {
                let grown = self.allocated_after(end) - self.allocated_before(start);
                grown.into_bound_py_any(py)
            }
        };
        value.map(Some)
    }

    /// Returns the kind of the event in `MindTorch` v2's vocabulary.
    fn kind(&self) -> &'static str {
        let Some((_, event)) = self.recorded() else {
            return "memory";
        };
        match event.category {
            Category::Operator => "op",
            Category::Annotation | Category::DeviceAnnotation => "scope",
            Category::PythonFunction => "python_function",
            Category::Runtime => "runtime",
            Category::Kernel => "kernel",
            Category::Other => "other",
        }
    }

    fn step(&self, moment: Nanos) -> u64 {
        self.store.get().analyzed.steps().at(moment)
    }

    /// Returns the system's id of the thread.
    fn thread_id(&self) -> u64 {
        let profile = self.analysis().profile();
        let thread = match self.item {
            Item::Event(id) => profile.event(id).thread,
            Item::Memory(record) => profile.memory().at(record as usize).thread,
        };
        profile.threads()[thread.index()].native
    }

    /// Returns the id that distinguishes operators and connects a kernel with the call that
    /// launched it.
    fn correlation_id(&self) -> Option<u32> {
        let (id, event) = self.recorded()?;
        let number = match event.category {
            Category::Operator | Category::Runtime | Category::Kernel => {
                event_number(self.analysis(), id)
            }
            Category::Annotation
            | Category::DeviceAnnotation
            | Category::PythonFunction
            | Category::Other => 0,
        };
        (number != 0).then_some(number)
    }

    fn allocated_before(&self, moment: Nanos) -> i64 {
        self.analysis().host_totals().before(moment).cast_signed()
    }

    fn allocated_after(&self, moment: Nanos) -> i64 {
        self.analysis().host_totals().after(moment).cast_signed()
    }
}
