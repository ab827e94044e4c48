//! Raw events read straight from torch's memory, where that was checked against Python's accessors.

use std::cell::OnceCell;
use std::sync::OnceLock;

use mindprof_model::{DeviceKind, InputsEncoder, Part, StackId, StringId, StringTable};
use mindprof_pytorch::{
    KinetoEvents, KinetoFacts, KinetoLayout, KinetoValues, KnownValue, read_words,
};
use mindprof_trace::dtype_of_name;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyComplexMethods, PyList};

use super::accessors::{PythonEvents, whole};
use super::inputs::RawInputs;
use super::source::{RawEvent, RawEvents};
use crate::arguments::Number;
use crate::error::Error;
use crate::py_cache::accessor_names;

static LAYOUT: OnceLock<NativeLayout> = OnceLock::new();

/// What reads results of this process's torch.
#[derive(Clone, Copy)]
struct NativeLayout {
    results: KinetoLayout,
    /// None where what events were given is told by Python alone.
    values: Option<KinetoValues>,
    /// The activities of ranges that users name, on the host and on devices.
    annotations: [u8; 2],
}

/// Finds out how torch's results lie in memory from one whose events Python can tell of too. It
/// holds a range that a user named, and numbers and lists of them as inputs. Results are read from
/// memory from then on.
///
/// # Errors
/// When that does not say the same; then they are read by accessors as before, or what events were
/// given is, if only that differs.
#[pyfunction]
pub(crate) fn check_torch_results(result: &Bound<'_, PyAny>) -> PyResult<()> {
    let python = PythonEvents::of(result)?;
    let (address, start_ns) = (value_address(result)?, start_ns(result)?);
    let count = python.len() as u64;
    let results = KinetoLayout::find(address, count, start_ns).map_err(Error::from)?;
    let open = |layout: &NativeLayout| NativeEvents::open(layout, result);
    let mut layout = NativeLayout {
        results,
        values: None,
        annotations: [u8::MAX; 2],
    };
    let events = open(&layout)?;
    for position in 0..python.len() {
        if python.event(position)?.is_annotation {
            let host = events.facts.event(position).activity;
            // torch numbers them one after the other.
            layout.annotations = [host, host + 1];
        }
    }
    let events = open(&layout)?;
    if events.len() != python.len() {
        return Err(different("events", 0));
    }
    let mut strings = StringTable::new();
    if events.names(&mut strings)? != python.names(&mut strings)? {
        return Err(different("names", 0));
    }
    for position in 0..python.len() {
        compare(&events, &python, position)?;
    }
    let values = known_values(&python).and_then(|known| {
        let learnt = KinetoValues::learn(&events.events, &known);
        let values = learnt.map_err(Error::from)?;
        compare_inputs(&events, &values, &python).map(|()| values)
    });
    layout.values = values.as_ref().ok().copied();
    // Of two that find it, both find the same.
    let _ = LAYOUT.set(layout);
    values.map(|_| ())
}

fn compare(native: &NativeEvents<'_>, python: &PythonEvents<'_>, position: usize) -> PyResult<()> {
    let expected = RawEvent {
        // Told by the name where it matters.
        activity: None,
        ..python.event(position)?
    };
    if native.event(position)? != expected {
        return Err(different("facts", position));
    }
    if native.bytes(position)? != python.bytes(position)? {
        return Err(different("bytes", position));
    }
    // Equal stacks of one part have one id.
    let mut part = Part::new();
    if native.stack(position, &mut part)? != python.stack(position, &mut part)? {
        return Err(different("stacks", position));
    }
    Ok(())
}

/// Returns the values of which Python tells, with their events and their positions in the inputs.
fn known_values(python: &PythonEvents<'_>) -> PyResult<Vec<(usize, usize, KnownValue)>> {
    let mut known = Vec::new();
    for (event, raw) in python.events.iter().enumerate() {
        for (position, value) in RawInputs::of(raw)?.numbers() {
            let value = match Number::from_python(value) {
                Some(Number::Int(number)) => KnownValue::Int(number),
                Some(Number::Float(number)) => KnownValue::Float(number),
                Some(Number::Bool(truth)) => KnownValue::Bool(truth),
                None => match (ints(value), value.cast::<PyComplex>()) {
                    (Some(numbers), _) => KnownValue::Ints(numbers),
                    (None, Ok(number)) => KnownValue::Complex(number.real(), number.imag()),
                    (None, Err(_)) => continue,
                },
            };
            known.push((event, position, value));
        }
    }
    Ok(known)
}

/// Returns a list of integers, if a value is one and has any.
fn ints(value: &Bound<'_, PyAny>) -> Option<Vec<i64>> {
    let items = value
        .cast::<PyList>()
        .ok()
        .filter(|list| !list.is_empty())?;
    let int = |item: Bound<'_, PyAny>| match Number::from_python(&item) {
        Some(Number::Int(number)) => Some(number),
        _ => None,
    };
    items.iter().map(int).collect()
}

fn compare_inputs(
    native: &NativeEvents<'_>,
    values: &KinetoValues,
    python: &PythonEvents<'_>,
) -> PyResult<()> {
    let (mut found, mut expected) = (InputsEncoder::default(), InputsEncoder::default());
    for position in 0..python.len() {
        found.restart();
        expected.restart();
        if native.events.has_keywords(position) {
            continue;
        }
        let inputs = native.events.inputs(position);
        inputs.write(values, dtype_of_name, &mut found);
        python.inputs(position, &mut expected)?;
        if found.words() != expected.words() {
            return Err(different("inputs", position));
        }
    }
    Ok(())
}

fn different(what: &str, position: usize) -> PyErr {
    let text = format!("torch's results do not lie as expected: other {what} at {position}");
    PyRuntimeError::new_err(text)
}

/// Raw events where torch has them.
pub(super) struct NativeEvents<'a> {
    events: KinetoEvents<'a>,
    facts: KinetoFacts,
    layout: NativeLayout,
    result: &'a Bound<'a, PyAny>,
    /// Made when it is first needed, which takes long.
    python: OnceCell<PythonEvents<'a>>,
}

impl<'a> NativeEvents<'a> {
    /// Opens results that Python holds. Returns none where that was not checked or they do not look
    /// as expected.
    pub(super) fn of(result: &'a Bound<'a, PyAny>) -> Option<Self> {
        Self::open(LAYOUT.get()?, result).ok()
    }

    fn open(layout: &NativeLayout, result: &'a Bound<'a, PyAny>) -> PyResult<Self> {
        let (address, start_ns) = (value_address(result)?, start_ns(result)?);
        let events = layout.results.open(address, start_ns, result);
        let events = events.map_err(Error::from)?;
        Ok(Self {
            facts: KinetoFacts::read(&events),
            events,
            layout: *layout,
            result,
            python: OnceCell::new(),
        })
    }

    /// Writes what Python tells of the inputs of an event.
    fn python_inputs(&self, position: usize, inputs: &mut InputsEncoder) -> PyResult<()> {
        if self.python.get().is_none() {
            let python = PythonEvents::of(self.result)?;
            if python.len() != self.len() {
                return Err(different("events", 0));
            }
            let _ = self.python.set(python);
        }
        match self.python.get() {
            Some(python) => python.inputs(position, inputs),
            None => Ok(()),
        }
    }
}

impl RawEvents for NativeEvents<'_> {
    fn len(&self) -> usize {
        self.events.len()
    }

    fn names(&self, strings: &mut StringTable) -> PyResult<Vec<StringId>> {
        Ok(self.facts.names(strings))
    }

    fn event(&self, position: usize) -> PyResult<RawEvent> {
        let event = self.facts.event(position);
        let device = DeviceKind::from_number(event.device.into());
        Ok(RawEvent {
            start_ns: event.start_ns.into(),
            end_ns: event.end_ns.into(),
            start_thread: event.start_thread,
            end_thread: event.end_thread,
            forward_thread: event.forward_thread,
            scope: event.scope.into(),
            sequence: event.sequence.into(),
            device: device.ok_or_else(|| different("devices", position))?,
            device_index: event.device_index.into(),
            resource: event.resource.into(),
            correlation: event.correlation.into(),
            linked: event.linked.into(),
            external: event.external.map(i128::from),
            is_async: event.is_async,
            is_hidden: event.is_hidden,
            is_annotation: self.layout.annotations.contains(&event.activity),
            is_python: event.is_python,
            activity: None,
        })
    }

    fn bytes(&self, position: usize) -> PyResult<i64> {
        Ok(self.events.bytes(position))
    }

    fn stack(&self, position: usize, part: &mut Part) -> PyResult<StackId> {
        let mut stack = StackId::NONE;
        for frame in self.events.stack(position).rev() {
            let frame = part.strings.intern(&String::from_utf8_lossy(frame));
            stack = part.stacks.push(stack, frame);
        }
        Ok(stack)
    }

    fn inputs(&self, position: usize, inputs: &mut InputsEncoder) -> PyResult<()> {
        match &self.layout.values {
            Some(values) if !self.events.has_keywords(position) => {
                let given = self.events.inputs(position);
                given.write(values, dtype_of_name, inputs);
                Ok(())
            }
            _ => self.python_inputs(position, inputs),
        }
    }
}

/// Returns where an object of C++ lies that Python holds. It is checked by who reads it.
fn value_address(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    // After the count of references and the type, which every object of Python begins with.
    let place = object.as_ptr() as u64 + 2 * size_of::<usize>() as u64;
    let [address] = read_words(place).ok_or_else(|| different("objects", 0))?;
    Ok(address)
}

fn start_ns(result: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(whole(
        result,
        accessor_names(result.py()).trace_start_ns.bind(result.py()),
    )? as u64)
}
