//! Raw events as objects of Python, each of which answers to torch's accessors.

use mindprof_formats::category_of_name;
use mindprof_model::{DeviceKind, InputsEncoder, Part, StackId, StringId, StringTable};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use super::inputs::RawInputs;
use super::source::{RawEvent, RawEvents};

/// Raw events in the order in which they were given.
pub(crate) struct PythonEvents<'py> {
    pub(crate) events: Vec<Bound<'py, PyAny>>,
}

impl<'py> PythonEvents<'py> {
    /// Takes the events of raw results.
    ///
    /// # Errors
    /// When they cannot be had.
    pub(crate) fn of(result: &Bound<'py, PyAny>) -> PyResult<Self> {
        let events = result
            .call_method0(intern!(result.py(), "events"))?
            .try_iter()?;
        Ok(Self {
            events: events.collect::<PyResult<_>>()?,
        })
    }
}

impl RawEvents for PythonEvents<'_> {
    fn len(&self) -> usize {
        self.events.len()
    }

    fn names(&self, strings: &mut StringTable) -> PyResult<Vec<StringId>> {
        let name = |raw: &Bound<'_, PyAny>| {
            let name = raw.call_method0(intern!(raw.py(), "name"))?;
            Ok(strings.intern(&name.str()?.to_string_lossy()))
        };
        self.events.iter().map(name).collect()
    }

    fn event(&self, position: usize) -> PyResult<RawEvent> {
        let raw = &self.events[position];
        let py = raw.py();
        // Not every torch has all of them.
        let activity = optional(raw, intern!(py, "activity_type"))?;
        let activity = activity.map(|kind| Ok::<_, PyErr>(kind.str()?.to_string()));
        let truth = |accessor| match optional(raw, accessor)? {
            Some(value) => value.is_truthy(),
            None => Ok(false),
        };
        Ok(RawEvent {
            start_ns: whole(raw, intern!(py, "start_ns"))?,
            end_ns: whole(raw, intern!(py, "end_ns"))?,
            start_thread: whole(raw, intern!(py, "start_thread_id"))? as u64,
            end_thread: whole(raw, intern!(py, "end_thread_id"))? as u64,
            forward_thread: whole(raw, intern!(py, "fwd_thread_id"))? as u64,
            scope: whole(raw, intern!(py, "scope"))?,
            sequence: whole(raw, intern!(py, "sequence_nr"))?,
            device: device(raw)?,
            device_index: whole(raw, intern!(py, "device_index"))?,
            resource: whole(raw, intern!(py, "device_resource_id"))?,
            correlation: whole(raw, intern!(py, "correlation_id"))?,
            linked: whole(raw, intern!(py, "linked_correlation_id"))?,
            external: optional(raw, intern!(py, "external_id"))?
                .map(|number| whole_value(&number))
                .transpose()?,
            is_async: truth(intern!(py, "is_async"))?,
            is_hidden: truth(intern!(py, "is_hidden_event"))?,
            is_annotation: truth(intern!(py, "is_user_annotation"))?,
            is_python: truth(intern!(py, "is_python_function"))?,
            activity: activity.transpose()?.map(|name| category_of_name(&name)),
        })
    }

    fn bytes(&self, position: usize) -> PyResult<i64> {
        let raw = &self.events[position];
        raw.call_method0(intern!(raw.py(), "nbytes"))?.extract()
    }

    fn stack(&self, position: usize, part: &mut Part) -> PyResult<StackId> {
        let raw = &self.events[position];
        let frames = raw.call_method0(intern!(raw.py(), "stack"))?;
        let frames: Vec<String> = frames.extract()?;
        let mut stack = StackId::NONE;
        for frame in frames.iter().rev() {
            let frame = part.strings.intern(frame);
            stack = part.stacks.push(stack, frame);
        }
        Ok(stack)
    }

    fn inputs(&self, position: usize, inputs: &mut InputsEncoder) -> PyResult<()> {
        RawInputs::of(&self.events[position])?.encode(inputs)
    }
}

/// By number, because a real torch has a type of its own.
fn device(raw: &Bound<'_, PyAny>) -> PyResult<DeviceKind> {
    let py = raw.py();
    let device = raw.call_method0(intern!(py, "device_type"))?;
    let number = py.get_type::<PyInt>().call1((device,))?;
    let kind = number.extract().ok().and_then(DeviceKind::from_number);
    kind.ok_or_else(|| PyValueError::new_err(format!("{number} is not a valid DeviceType")))
}

/// Returns what an accessor says that not every torch has.
pub(super) fn optional<'py>(
    raw: &Bound<'py, PyAny>,
    accessor: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let accessor = raw.getattr_opt(accessor)?;
    accessor.map(|accessor| accessor.call0()).transpose()
}

/// Returns a whole number, which may need 64 bits with or without a sign.
pub(super) fn whole(raw: &Bound<'_, PyAny>, accessor: &Bound<'_, PyString>) -> PyResult<i128> {
    whole_value(&raw.call_method0(accessor)?)
}

fn whole_value(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    value
        .extract::<i64>()
        .map(i128::from)
        .or_else(|_| value.extract::<u64>().map(i128::from))
}
