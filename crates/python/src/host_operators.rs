//! Operators, memory and device events of frameworks that report to the profiler from Python.
//!
//! A framework opens and closes an operator with a pair of calls, which write the same scopes as
//! the embedded runtime and torch's observer. Events of its devices arrive as columns when the
//! recording ends.

use mindprof_model::{DeviceEvent, DeviceKind, Error, Part};
use mindprof_record::{is_recording, memory, open, open_with, wants_inputs};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::from_dict::from_dict;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::arguments::Arguments;
use crate::named_argument::{instance, number};
use crate::operator_names::operator_name;
use crate::range::RangeHandle;

/// Opens an operator. Returns the handle that closes it, or None if nothing is recording.
#[pyfunction]
#[pyo3(signature = (name, inputs = None, keywords = None, correlation = 0))]
pub(crate) fn open_operator(
    name: &Bound<'_, PyAny>,
    inputs: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = correlation_number)] correlation: u32,
) -> PyResult<Option<Py<RangeHandle>>> {
    let name = instance("name", "a string", name)?;
    let inputs = inputs.map(|inputs| instance("inputs", "a tuple", inputs));
    let keywords = keywords.map(|keywords| instance("keywords", "a dict", keywords));
    open_scope(
        name,
        inputs.transpose()?,
        keywords.transpose()?,
        correlation,
    )
}

fn correlation_number(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    number("correlation", "an integer from 0 to 4294967295", value)
}

#[inline]
fn open_scope(
    name: &Bound<'_, PyString>,
    inputs: Option<&Bound<'_, PyTuple>>,
    keywords: Option<&Bound<'_, PyDict>>,
    correlation: u32,
) -> PyResult<Option<Py<RangeHandle>>> {
    if !is_recording() {
        return Ok(None);
    }
    let py = name.py();
    let name = operator_name(name);
    let open = if wants_inputs() {
        Arguments::with_operator(py, inputs, keywords, |arguments| {
            open_with(name, |encoder| arguments.encode(encoder))
        })?
    } else {
        open(name)
    };
    let Some(open) = open else {
        return Ok(None);
    };
    open.set_external(correlation);
    RangeHandle::of_operator(py, open).map(Some)
}

/// Opens an operator with the arguments of `MindTorch` v2's dispatcher. The device is ignored,
/// because a CPU scope has no field for it.
#[pyfunction]
#[expect(unused_variables, reason = "it is part of the dispatcher's call")]
pub(crate) fn open_dispatched_operator(
    name: &Bound<'_, PyString>,
    device: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyTuple>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<Option<Py<RangeHandle>>> {
    open_scope(name, Some(inputs), Some(keywords), 0)
}

/// Closes an operator. None and operators that are already closed are ignored.
#[pyfunction]
pub(crate) fn close_operator(operator: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    if let Some(operator) = operator {
        let expected = "a handle from open_operator";
        RangeHandle::close_operator(instance("operator", expected, operator)?);
    }
    Ok(())
}

/// The maximum size of one block. Trace readers use the same limit.
const MOST_BLOCK_BYTES: u64 = 1 << 42;

/// The maximum total of allocated memory: more than any machine has.
const MOST_TOTAL_BYTES: u64 = 1 << 47;

/// Reports that a block of CPU memory was allocated (`bytes` above zero) or freed.
#[pyfunction]
pub(crate) fn report_memory(
    #[pyo3(from_py_with = address_number)] address: u64,
    #[pyo3(from_py_with = bytes_number)] bytes: i64,
    #[pyo3(from_py_with = total_number)] total: u64,
) -> PyResult<()> {
    if bytes.unsigned_abs() > MOST_BLOCK_BYTES {
        return Err(PyValueError::new_err(format!(
            "argument 'bytes': expected at most {MOST_BLOCK_BYTES} bytes, found {bytes}"
        )));
    }
    if total > MOST_TOTAL_BYTES {
        return Err(PyValueError::new_err(format!(
            "argument 'total': expected at most {MOST_TOTAL_BYTES}, found {total}"
        )));
    }
    memory(address, bytes, || total);
    Ok(())
}

fn address_number(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    number("address", "a non-negative 64-bit integer", value)
}

fn bytes_number(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    number("bytes", "a 64-bit integer", value)
}

fn total_number(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    number("total", "a non-negative 64-bit integer", value)
}

/// Returns whether an operator that is opened now would be recorded.
#[pyfunction(name = "is_recording")]
pub(crate) fn is_recording_now() -> bool {
    is_recording()
}

/// Returns whether the inputs of an operator that is opened now would be recorded.
#[pyfunction(name = "wants_inputs")]
pub(crate) fn wants_inputs_now() -> bool {
    wants_inputs()
}

from_dict! {
    /// Events of a device as columns. Numeric columns contain 64-bit integers in native byte order.
    pub(crate) struct DeviceColumns {
        device: u64,
        /// The bounds of all event times, in nanoseconds since the Unix epoch.
        earliest_ns: u64,
        latest_ns: u64,
        names: Vec<String>,
        name: PyBackedBytes,
        start_ns: PyBackedBytes,
        end_ns: PyBackedBytes,
        stream: PyBackedBytes,
        correlation: PyBackedBytes,
        device_index: PyBackedBytes,
    }
}

impl DeviceColumns {
    /// Validates the columns and converts them to a part that a recording can attach.
    pub(crate) fn into_part(self) -> PyResult<Part> {
        let kind = DeviceKind::from_number(self.device)
            .ok_or_else(|| PyValueError::new_err(format!("unknown device type {}", self.device)))?;
        let columns = [
            ("name", &self.name),
            ("start_ns", &self.start_ns),
            ("end_ns", &self.end_ns),
            ("stream", &self.stream),
            ("correlation", &self.correlation),
            ("device_index", &self.device_index),
        ];
        let rows = self.name.len() / size_of::<i64>();
        let mut numbers = Vec::with_capacity(columns.len());
        for (title, bytes) in columns {
            numbers.push(column(title, bytes, rows)?);
        }
        let events = (0..rows)
            .map(|row| {
                Ok(DeviceEvent {
                    name: narrow("name", numbers[0][row])?,
                    start_unix_ns: numbers[1][row],
                    end_unix_ns: numbers[2][row],
                    stream: numbers[3][row],
                    correlation: narrow("correlation", numbers[4][row])?,
                    device: narrow("device_index", numbers[5][row])?,
                })
            })
            .collect::<PyResult<Vec<_>>>()?;
        let part = Part::from_device_events(kind, &self.names, &events)
            .map_err(|error| self.refuse(&error, &events))?;
        for event in &events {
            self.check_time("start_ns", event.start_unix_ns)?;
            self.check_time("end_ns", event.end_unix_ns)?;
        }
        Ok(part)
    }

    /// Converts an error of the part into one that names the offending argument.
    fn refuse(&self, error: &Error, events: &[DeviceEvent]) -> PyErr {
        PyValueError::new_err(match error {
            Error::UnknownName { event, .. } => {
                let (row, count) = (event.index(), self.names.len());
                let name = events[row].name;
                format!(
                    "argument 'name': expected indices into the {count} strings of 'names', \
                     found {name} at [{row}]"
                )
            }
            Error::EndBeforeStart { event } => {
                let row = event.index();
                let (start, end) = (events[row].start_unix_ns, events[row].end_unix_ns);
                format!(
                    "argument 'end_ns': expected a time not before 'start_ns', which is {start}, \
                     found {end} at [{row}]"
                )
            }
            other => other.to_string(),
        })
    }

    /// Rejects a time outside of the bounds, which comes from a different clock than the
    /// recording's.
    fn check_time(&self, title: &str, time: u64) -> PyResult<()> {
        let Self {
            earliest_ns,
            latest_ns,
            ..
        } = self;
        if (*earliest_ns..=*latest_ns).contains(&time) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "argument '{title}': expected times of time.time_ns() from {earliest_ns} to \
             {latest_ns}, found {time}, which is far from the recording"
        )))
    }
}

fn column(title: &str, bytes: &[u8], rows: usize) -> PyResult<Vec<u64>> {
    let (words, rest) = bytes.as_chunks();
    if words.len() != rows || !rest.is_empty() {
        let found = bytes.len() / size_of::<i64>();
        return Err(PyValueError::new_err(format!(
            "argument '{title}': expected {rows} numbers, as in 'name', found {found}"
        )));
    }
    let numbers = words.iter().map(|word| {
        let number = i64::from_ne_bytes(*word);
        u64::try_from(number).map_err(|_| {
            PyValueError::new_err(format!(
                "argument '{title}': expected non-negative numbers, found {number}"
            ))
        })
    });
    numbers.collect()
}

fn narrow(title: &str, number: u64) -> PyResult<u32> {
    u32::try_from(number).map_err(|_| {
        PyValueError::new_err(format!(
            "argument '{title}': expected numbers up to {}, found {number}",
            u32::MAX
        ))
    })
}
