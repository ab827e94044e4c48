//! Turns raw results of torch's collector into Python events or into a part of a recording.
//!
//! `mindprof_pytorch` reads the results by torch's rules, the analysis of the part yields memory,
//! links and order, and callbacks of Python create the objects.

#![expect(
    clippy::needless_pass_by_value,
    reason = "PyO3 extracts arguments into owned values"
)]

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use mindprof_analyze::{Analysis, Bytes};
use mindprof_model::{Category, EventId, MemoryRecord, Nanos, Part};
use mindprof_pytorch::{ReadOptions, ThreadIdentity, read_raw_results};
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use self::accessors::{PythonEvents, whole};
pub(crate) use self::native::check_torch_results;
use self::native::native_events;
use crate::enter::Enter;
use crate::py_cache::accessor_names;

mod accessors;
mod inputs;
mod native;

/// Returns the events of raw results in time order, and whether the timeout expired before all were
/// made.
///
/// `make_event` makes an event from a raw one. `make_memory_event` makes one from the raw event of
/// a memory record, its id, and its bytes on the CPU and on devices.
#[pyfunction]
pub(crate) fn raw_events<'py>(
    py: Python<'py>,
    result: Bound<'py, PyAny>,
    make_event: Bound<'py, PyAny>,
    make_memory_event: Bound<'py, PyAny>,
    timeout_s: Option<f64>,
) -> PyResult<(Vec<Bound<'py, PyAny>>, bool)> {
    let begun = Instant::now();
    let limit = timeout_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let mut is_late = false;
    let mut check = || {
        is_late = is_late || limit.is_some_and(|limit| begun.elapsed() >= limit);
        is_late
    };
    let mut made = FxHashMap::default();
    let source = PythonEvents::of(&result)?;
    let options = ReadOptions {
        time_zero: whole(&result, accessor_names(py).trace_start_ns.bind(py))?,
        // The Python callbacks read these themselves.
        inputs: false,
        stacks: false,
        threads: ThreadIdentity::Counted,
        known_loss: 0,
    };
    let results = read_raw_results(&source, options, |position| {
        if check() {
            return Ok(ControlFlow::Break(()));
        }
        made.insert(position, make_event.call1((&source.events[position],))?);
        Ok(ControlFlow::Continue(()))
    })?;
    let part = results.part;
    let analysis = py.enter(move || {
        let profile = part.into_profile()?;
        Ok::<_, mindprof_trace::Error>(Analysis::build(profile))
    })?;
    let events = MadeEvents {
        analysis: &analysis,
        positions: &results.events,
        made,
    };
    events.set_memory()?;
    events.set_links()?;
    let mut found = events.spans();
    let records = loose_records(&analysis, &results.memory, results.failed);
    for (number, (position, record)) in (results.last_number + 1..).zip(records) {
        if check() {
            break;
        }
        let (raw, bytes) = (&source.events[position], Bytes::of(&record));
        let event = make_memory_event.call1((raw, number, bytes.host, bytes.device))?;
        found.push((record.time, record.time, event));
    }
    found.sort_by_key(|(start, end, _)| (*start, Reverse(*end)));
    let found = found.into_iter().map(|(_, _, event)| event).collect();
    Ok((found, is_late))
}

/// The Python events made so far, with the analysis that completes them.
struct MadeEvents<'a, 'py> {
    analysis: &'a Analysis,
    /// For each event of the profile, the position of its raw event.
    positions: &'a [u32],
    /// Python events by position. Hidden events have none.
    made: FxHashMap<usize, Bound<'py, PyAny>>,
}

impl<'py> MadeEvents<'_, 'py> {
    fn iter(&self) -> impl Iterator<Item = (EventId, &Bound<'py, PyAny>)> {
        let ids = (0..self.positions.len()).map(EventId::from_index);
        ids.filter_map(|id| Some((id, self.of(id)?)))
    }

    fn of(&self, id: EventId) -> Option<&Bound<'py, PyAny>> {
        self.made.get(&(self.positions[id.index()] as usize))
    }

    fn set_memory(&self) -> PyResult<()> {
        for (id, event) in self.iter() {
            let bytes = self.analysis.memory().total(id);
            if bytes != Bytes::default() {
                event.setattr("cpu_memory_usage", bytes.host)?;
                event.setattr("device_memory_usage", bytes.device)?;
            }
        }
        Ok(())
    }

    /// Adds kernels to the operators that launched them, and moves runtime calls to the thread of
    /// their operator.
    fn set_links(&self) -> PyResult<()> {
        let profile = self.analysis.profile();
        let mut work = Vec::new();
        for (id, event) in self.iter() {
            let Some(owner) = self.analysis.correlation().owner(id) else {
                continue;
            };
            if profile.event(id).category == Category::Runtime {
                if let Some(owner) = self.of(owner) {
                    event.setattr("thread", owner.getattr("thread")?)?;
                }
            } else if self.analysis.device(id).is_listed_kernel() {
                work.push((self.positions[id.index()] as usize, owner, event));
            }
        }
        // Kernels are listed in the order of the raw events.
        work.sort_by_key(|(position, _, _)| *position);
        for (_, owner, event) in work {
            if let Some(owner) = self.of(owner) {
                append_kernel(owner, event)?;
            }
        }
        Ok(())
    }

    /// Returns the events with their starts and ends.
    fn spans(&self) -> Vec<(Nanos, Nanos, Bound<'py, PyAny>)> {
        self.iter()
            .map(|(id, made)| {
                let event = self.analysis.profile().event(id);
                (event.start, event.end(), made.clone())
            })
            .collect()
    }
}

fn append_kernel(owner: &Bound<'_, PyAny>, kernel: &Bound<'_, PyAny>) -> PyResult<()> {
    let name = kernel.getattr("name")?;
    let device = kernel.getattr("device_index")?;
    let elapsed_us = kernel.getattr("time_range")?.call_method0("elapsed_us")?;
    owner.call_method1("append_kernel", (name, device, elapsed_us))?;
    Ok(())
}

/// Returns the memory records that become events of their own, with their positions, in the order
/// of their ids: first those outside any event, then the failed allocations.
fn loose_records(
    analysis: &Analysis,
    positions: &[usize],
    failed: Vec<(usize, MemoryRecord)>,
) -> Vec<(usize, MemoryRecord)> {
    let unclaimed = analysis.memory().unclaimed().iter();
    let unclaimed = unclaimed.map(|&index| index as usize);
    let records = analysis.profile().memory();
    let mut loose: Vec<(usize, MemoryRecord)> = unclaimed
        .map(|index| (positions[index], records.at(index)))
        .collect();
    loose.sort_by_key(|(position, _)| *position);
    loose.extend(failed);
    loose
}

/// Reads the results of torch's collector that ran beside a recording in this process.
///
/// # Errors
/// If an accessor fails or returns an invalid value.
pub(crate) fn read_part(result: &Bound<'_, PyAny>, inputs: bool, stacks: bool) -> PyResult<Part> {
    let options = ReadOptions {
        time_zero: whole(
            result,
            accessor_names(result.py()).trace_start_ns.bind(result.py()),
        )?,
        inputs,
        stacks,
        threads: ThreadIdentity::System,
        known_loss: 0,
    };
    let read_all = |_| Ok(ControlFlow::Continue(()));
    let results = match native_events(result) {
        Some(source) => read_raw_results(&source, options, read_all)?,
        None => read_raw_results(&PythonEvents::of(result)?, options, read_all)?,
    };
    Ok(results.part)
}
