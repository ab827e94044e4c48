//! Operators of frameworks that are driven from Python: opened and closed by pairs of calls, into
//! the same scopes that the embedded runtime and torch's observer write. What devices did for them
//! comes as columns when a recording ends.

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

/// Opens an operator. Returns what closes it, or nothing when nothing records.
#[pyfunction]
#[pyo3(signature = (name, inputs = None, keywords = None, correlation = 0))]
pub(crate) fn open_operator(
    name: &Bound<'_, PyAny>,
    inputs: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = correlation_number)] correlation: u32,
) -> PyResult<Option<Py<RangeHandle>>> {
    let name = instance("name", "a text", name)?;
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
    number("correlation", "a number from 0 to 4294967295", value)
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

/// Opens an operator as dispatchers of `MindTorch` v2 do: with the device that runs it, which a scope
/// of the host has no place for.
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

/// Closes an operator; one that is closed stays so, and nothing is closed by nothing.
#[pyfunction]
pub(crate) fn close_operator(operator: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    if let Some(operator) = operator {
        let expected = "what open_operator returned";
        RangeHandle::close_operator(instance("operator", expected, operator)?);
    }
    Ok(())
}

/// What no block of a machine's memory is larger than, as readers of traces take it too.
const MOST_BLOCK_BYTES: u64 = 1 << 42;

/// What no machine has more of.
const MOST_TOTAL_BYTES: u64 = 1 << 47;

/// Tells of a block of the host's memory that was taken (`bytes` above zero) or given back.
#[pyfunction]
pub(crate) fn report_memory(
    #[pyo3(from_py_with = address_number)] address: u64,
    #[pyo3(from_py_with = bytes_number)] bytes: i64,
    #[pyo3(from_py_with = total_number)] total: u64,
) -> PyResult<()> {
    if bytes.unsigned_abs() > MOST_BLOCK_BYTES {
        return Err(PyValueError::new_err(format!(
            "argument 'bytes': expected a block of at most {MOST_BLOCK_BYTES}, found {bytes}"
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
    number("address", "a number of 64 bits, from 0 on", value)
}

fn bytes_number(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    number("bytes", "a number of 64 bits", value)
}

fn total_number(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    number("total", "a number of 64 bits, from 0 on", value)
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
    /// What a device did, each number a column of 64-bit integers of the machine's order.
    pub(crate) struct DeviceColumns {
        device: u64,
        /// Between which times events can be, in nanoseconds since the Unix epoch.
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
    /// Makes the part that a recording takes.
    pub(crate) fn into_part(self) -> PyResult<Part> {
        let kind = DeviceKind::from_number(self.device)
            .ok_or_else(|| PyValueError::new_err(format!("there is no device {}", self.device)))?;
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

    /// Says which argument it is that no part could be made of.
    fn refuse(&self, error: &Error, events: &[DeviceEvent]) -> PyErr {
        PyValueError::new_err(match error {
            Error::UnknownName { event, .. } => {
                let (row, count) = (event.index(), self.names.len());
                let name = events[row].name;
                format!(
                    "argument 'name': expected places in the {count} texts of 'names', found \
                     {name} at [{row}]"
                )
            }
            Error::EndBeforeStart { event } => {
                let row = event.index();
                let (start, end) = (events[row].start_unix_ns, events[row].end_unix_ns);
                format!(
                    "argument 'end_ns': expected a time from 'start_ns' on, which is {start}, \
                     found {end} at [{row}]"
                )
            }
            other => other.to_string(),
        })
    }

    /// Refuses a time by another clock than that of the recording, which lies anywhere.
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
            "argument '{title}': expected as many numbers as 'name' has, {rows}, found {found}"
        )));
    }
    let numbers = words.iter().map(|word| {
        let number = i64::from_ne_bytes(*word);
        u64::try_from(number).map_err(|_| {
            PyValueError::new_err(format!(
                "argument '{title}': expected numbers from 0 on, found {number}"
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
