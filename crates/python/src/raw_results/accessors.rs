//! Raw events as Python objects that have torch's accessors.

use mindprof_model::{
    DeviceKind, InputsEncoder, Part, StackId, StringId, StringTable, activity_category,
};
use mindprof_pytorch::{Error as PytorchError, KnownValue, RawEvent, RawEvents, ReferenceEvents};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use super::inputs::RawInputs;
use crate::error::Error;
use crate::py_cache::accessor_names;

/// An error while raw events are read: an exception of an accessor, or a finding of the reader.
///
/// The reader is generic over the errors of its source; this one carries Python's exceptions
/// through it unchanged.
pub(crate) struct AccessorError(PyErr);

impl From<PyErr> for AccessorError {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<PytorchError> for AccessorError {
    fn from(error: PytorchError) -> Self {
        Self(match error {
            // torch raises it too.
            PytorchError::NegativeLink(_) => PyRuntimeError::new_err(error.to_string()),
            error => Error::from(error).into(),
        })
    }
}

impl From<AccessorError> for PyErr {
    fn from(error: AccessorError) -> Self {
        error.0
    }
}

/// Raw events as Python objects, in the order in which the results list them.
pub(crate) struct PythonEvents<'py> {
    pub(crate) events: Vec<Bound<'py, PyAny>>,
}

impl<'py> PythonEvents<'py> {
    /// Lists the events of raw results.
    ///
    /// # Errors
    /// If the accessor fails.
    pub(crate) fn of(result: &Bound<'py, PyAny>) -> PyResult<Self> {
        let events = result
            .call_method0(accessor_names(result.py()).events.bind(result.py()))?
            .try_iter()?;
        Ok(Self {
            events: events.collect::<PyResult<_>>()?,
        })
    }
}

impl RawEvents for PythonEvents<'_> {
    type Error = AccessorError;

    fn len(&self) -> usize {
        self.events.len()
    }

    fn names(&self, strings: &mut StringTable) -> Result<Vec<StringId>, AccessorError> {
        let name = |raw: &Bound<'_, PyAny>| {
            let name = raw.call_method0(accessor_names(raw.py()).name.bind(raw.py()))?;
            Ok(strings.intern(&name.str()?.to_string_lossy()))
        };
        self.events.iter().map(name).collect()
    }

    fn event(&self, position: usize) -> Result<RawEvent, AccessorError> {
        let raw = &self.events[position];
        let py = raw.py();
        let names = accessor_names(py);
        // Older releases of torch lack some accessors.
        let activity = optional(raw, names.activity_type.bind(py))?;
        let activity = activity.map(|kind| Ok::<_, PyErr>(kind.str()?.to_string()));
        let truth = |accessor| match optional(raw, accessor)? {
            Some(value) => value.is_truthy(),
            None => Ok(false),
        };
        Ok(RawEvent {
            start_ns: whole(raw, names.start_ns.bind(py))?,
            end_ns: whole(raw, names.end_ns.bind(py))?,
            start_thread: whole(raw, names.start_thread_id.bind(py))? as u64,
            end_thread: whole(raw, names.end_thread_id.bind(py))? as u64,
            forward_thread: whole(raw, names.fwd_thread_id.bind(py))? as u64,
            scope: whole(raw, names.scope.bind(py))?,
            sequence: whole(raw, names.sequence_nr.bind(py))?,
            device: device(raw)?,
            device_index: whole(raw, names.device_index.bind(py))?,
            resource: whole(raw, names.device_resource_id.bind(py))?,
            correlation: whole(raw, names.correlation_id.bind(py))?,
            linked: whole(raw, names.linked_correlation_id.bind(py))?,
            external: optional(raw, names.external_id.bind(py))?
                .map(|number| whole_value(&number))
                .transpose()?,
            is_async: truth(names.is_async.bind(py))?,
            is_hidden: truth(names.is_hidden_event.bind(py))?,
            is_annotation: truth(names.is_user_annotation.bind(py))?,
            is_python: truth(names.is_python_function.bind(py))?,
            activity: activity.transpose()?.map(|name| activity_category(&name)),
        })
    }

    fn bytes(&self, position: usize) -> Result<i64, AccessorError> {
        let raw = &self.events[position];
        let bytes = raw.call_method0(accessor_names(raw.py()).nbytes.bind(raw.py()))?;
        Ok(bytes.extract()?)
    }

    fn stack(&self, position: usize, part: &mut Part) -> Result<StackId, AccessorError> {
        let raw = &self.events[position];
        let frames = raw.call_method0(accessor_names(raw.py()).stack.bind(raw.py()))?;
        let frames: Vec<String> = frames.extract()?;
        let mut stack = StackId::NONE;
        for frame in frames.iter().rev() {
            let frame = part.strings.intern(frame);
            stack = part.stacks.push(stack, frame);
        }
        Ok(stack)
    }

    fn inputs(&self, position: usize, inputs: &mut InputsEncoder) -> Result<(), AccessorError> {
        Ok(RawInputs::of(&self.events[position])?.encode(inputs)?)
    }
}

impl ReferenceEvents for PythonEvents<'_> {
    fn known_values(&self) -> Result<Vec<(usize, usize, KnownValue)>, AccessorError> {
        let mut known = Vec::new();
        for (event, raw) in self.events.iter().enumerate() {
            let inputs = RawInputs::of(raw)?;
            let values = inputs.known_values();
            known.extend(values.map(|(position, value)| (event, position, value)));
        }
        Ok(known)
    }
}

/// Converts the device by its number, because torch has its own Python type for it.
fn device(raw: &Bound<'_, PyAny>) -> PyResult<DeviceKind> {
    let py = raw.py();
    let device = raw.call_method0(accessor_names(py).device_type.bind(py))?;
    let number = py.get_type::<PyInt>().call1((device,))?;
    let kind = number.extract().ok().and_then(DeviceKind::from_number);
    kind.ok_or_else(|| PyValueError::new_err(format!("{number} is not a valid DeviceType")))
}

/// Calls an accessor, or returns `None` if this torch does not have it.
pub(super) fn optional<'py>(
    raw: &Bound<'py, PyAny>,
    accessor: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let accessor = raw.getattr_opt(accessor)?;
    accessor.map(|accessor| accessor.call0()).transpose()
}

/// Calls an accessor that returns a 64-bit integer with or without a sign.
pub(super) fn whole(raw: &Bound<'_, PyAny>, accessor: &Bound<'_, PyString>) -> PyResult<i128> {
    whole_value(&raw.call_method0(accessor)?)
}

fn whole_value(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    value
        .extract::<i64>()
        .map(i128::from)
        .or_else(|_| value.extract::<u64>().map(i128::from))
}
