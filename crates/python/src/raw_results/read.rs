//! Reads raw results off torch's accessors into a part of a profile.
//!
//! What a part has no room for (inputs, metadata, flows) stays with the raw event, which is found
//! again by its position.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use mindprof_analyze::{MEMORY_KEY, OUT_OF_MEMORY_KEY};
use mindprof_formats::is_hidden_name;
use mindprof_model::{
    Category, DeviceKind, Event, Flags, ForwardThread, Links, MemoryRecord, Nanos, Part, StackId,
    StringTable, Thread, ThreadId,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::accessors::{category, device, is_async, is_hidden, scope, whole};

/// Raw results as a part, and the way back from it to the raw events.
pub(crate) struct RawResults<'py> {
    /// Its events and memory records lie in the order that they have in a profile.
    pub(crate) part: Part,
    /// The raw events as they were given.
    pub(crate) raw: Vec<Bound<'py, PyAny>>,
    /// By event of the part, the position of its raw event.
    pub(crate) events: Vec<usize>,
    /// By memory record of the part, the position of its raw event.
    pub(crate) memory: Vec<usize>,
    /// The requests for memory that failed, as records, and the positions of their raw events.
    pub(crate) failed: Vec<(usize, MemoryRecord)>,
    /// The largest number of an event that is shown.
    pub(crate) last_number: i128,
}

/// Reads raw results: whatever answers to `events()` and `trace_start_ns()`.
///
/// `visit` sees each event that is shown, with its position, before it is read; when it breaks,
/// the part holds what was read until then, and the memory records of all.
///
/// # Errors
/// When an accessor fails or says what no recorder would, or when `visit` does.
pub(crate) fn read_raw_results<'py>(
    result: &Bound<'py, PyAny>,
    mut visit: impl FnMut(usize, &Bound<'py, PyAny>) -> PyResult<ControlFlow<()>>,
) -> PyResult<RawResults<'py>> {
    let raw = result.call_method0("events")?.try_iter()?;
    let raw = raw.collect::<PyResult<Vec<_>>>()?;
    let mut reader = Reader {
        time_zero: whole(result, intern!(result.py(), "trace_start_ns"))?,
        ..Reader::default()
    };
    let mut rest = Vec::new();
    for (position, event) in raw.iter().enumerate() {
        let name = event.call_method0(intern!(event.py(), "name"))?;
        let name: String = name.str()?.to_string_lossy().into_owned();
        match name.as_str() {
            MEMORY_KEY => {
                let record = reader.read_memory(position, event)?;
                reader.memory.push(record);
            }
            OUT_OF_MEMORY_KEY => {
                let request = reader.read_memory(position, event)?;
                reader.add_failed(request);
            }
            _ => rest.push((position, name)),
        }
    }
    for (position, name) in rest {
        let event = &raw[position];
        let is_hidden = is_hidden_name(&name) || is_hidden(event)?;
        if !is_hidden && visit(position, event)?.is_break() {
            break;
        }
        reader.read_event(position, &name, event, is_hidden)?;
    }
    Ok(reader.finish(raw))
}

/// A part on its way: times count from nowhere, forward threads have the numbers of the recorder.
#[derive(Default)]
struct Reader {
    part: Part,
    time_zero: i128,
    threads: FxHashMap<(DeviceKind, u64, u64), ThreadId>,
    numbers: LinkNumbers,
    events: Vec<Entry>,
    memory: Vec<MemoryEntry>,
    failed: Vec<MemoryEntry>,
    last_number: i128,
}

struct Entry {
    position: usize,
    start: i128,
    end: i128,
    event: Event,
    links: Links,
    forward: u64,
}

struct MemoryEntry {
    position: usize,
    time: i128,
    record: MemoryRecord,
}

impl Reader {
    fn read_memory(&mut self, position: usize, raw: &Bound<'_, PyAny>) -> PyResult<MemoryEntry> {
        let py = raw.py();
        let record = MemoryRecord {
            time: Nanos::ZERO,
            address: 0,
            bytes: raw.call_method0(intern!(py, "nbytes"))?.extract()?,
            total_allocated: 0,
            total_reserved: 0,
            thread: self.host_thread(raw)?,
            stack: StackId::NONE,
            device: device(raw)?,
            device_index: i16::try_from(whole(raw, intern!(py, "device_index"))?).unwrap_or(-1),
        };
        Ok(MemoryEntry {
            position,
            time: whole(raw, intern!(py, "start_ns"))?,
            record,
        })
    }

    /// Adds the moment at which memory was not to be had; a part has no room for how much it was.
    fn add_failed(&mut self, request: MemoryEntry) {
        let name = self.part.strings.intern(OUT_OF_MEMORY_KEY);
        let thread = request.record.thread;
        let mut event = Event::new(Category::Other, name, thread, Nanos::ZERO, Nanos::ZERO);
        event.flags = Flags::INSTANT;
        self.events.push(Entry {
            position: request.position,
            start: request.time,
            end: request.time,
            event,
            links: Links::default(),
            forward: 0,
        });
        self.failed.push(request);
    }

    fn read_event(
        &mut self,
        position: usize,
        name: &str,
        raw: &Bound<'_, PyAny>,
        is_hidden: bool,
    ) -> PyResult<()> {
        let py = raw.py();
        let device = device(raw)?;
        let number = whole(raw, intern!(py, "correlation_id"))?;
        let link = whole(raw, intern!(py, "linked_correlation_id"))?;
        if link < 0 && !is_hidden {
            return Err(PyRuntimeError::new_err(format!(
                "Got negative correlation id {link} in profiler post processing"
            )));
        }
        // Runtime calls that nobody asked for have numbers too, but those of another count.
        let is_scope = link == 0 && whole(raw, intern!(py, "external_id"))? != 0;
        let category = category(raw, device, link, is_scope)?;
        let thread = if device == DeviceKind::Cpu {
            self.host_thread(raw)?
        } else {
            let index = whole(raw, intern!(py, "device_index"))?;
            let stream = whole(raw, intern!(py, "device_resource_id"))?;
            self.track(device, index as u64, stream as u64)
        };
        let name = self.part.strings.intern(name);
        let mut event = Event::new(category, name, thread, Nanos::ZERO, Nanos::ZERO);
        event.scope = scope(whole(raw, intern!(py, "scope"))?);
        event.set_sequence(u32::try_from(whole(raw, intern!(py, "sequence_nr"))?).ok());
        event.stack = self.read_stack(raw)?;
        if is_hidden {
            event.flags = event.flags.union(Flags::HIDDEN);
        } else {
            self.last_number = self.last_number.max(number);
        }
        if is_async(raw)? {
            event.flags = event.flags.union(Flags::ASYNC);
        }
        let links = if is_scope {
            Links::new(self.numbers.number(number), 0)
        } else {
            Links::new(self.numbers.number(link), self.numbers.number(number))
        };
        self.events.push(Entry {
            position,
            start: whole(raw, intern!(py, "start_ns"))?,
            end: whole(raw, intern!(py, "end_ns"))?,
            event,
            links,
            forward: whole(raw, intern!(py, "fwd_thread_id"))? as u64,
        });
        Ok(())
    }

    fn read_stack(&mut self, raw: &Bound<'_, PyAny>) -> PyResult<StackId> {
        let frames = raw.call_method0(intern!(raw.py(), "stack"))?;
        let frames: Vec<String> = frames.extract()?;
        let mut stack = StackId::NONE;
        for frame in frames.iter().rev() {
            let frame = self.part.strings.intern(frame);
            stack = self.part.stacks.push(stack, frame);
        }
        Ok(stack)
    }

    fn host_thread(&mut self, raw: &Bound<'_, PyAny>) -> PyResult<ThreadId> {
        let native = whole(raw, intern!(raw.py(), "start_thread_id"))?;
        Ok(self.track(DeviceKind::Cpu, HOST_PROCESS, native as u64))
    }

    fn track(&mut self, device: DeviceKind, process: u64, native: u64) -> ThreadId {
        let part = &mut self.part;
        let key = (device, process, native);
        *self.threads.entry(key).or_insert_with(|| {
            part.add_thread(Thread {
                process,
                native,
                name: StringTable::EMPTY,
                device,
            })
        })
    }

    /// Orders everything, so that positions stay known, and counts time from the earliest moment.
    fn finish(mut self, raw: Vec<Bound<'_, PyAny>>) -> RawResults<'_> {
        self.events
            .sort_by_key(|entry| (entry.start, Reverse(entry.end)));
        self.memory.sort_by_key(|entry| entry.time);
        let firsts = [
            self.events.first().map(|entry| entry.start),
            self.memory.first().map(|entry| entry.time),
        ];
        let zero = firsts.into_iter().flatten().fold(self.time_zero, i128::min);
        let since = |time: i128| Nanos(u64::try_from(time - zero).unwrap_or(u64::MAX));
        self.part.reference_unix_ns = u64::try_from(zero).unwrap_or(0);
        for entry in &mut self.events {
            entry.event.start = since(entry.start);
            entry.event.duration = since(entry.end.max(entry.start)) - entry.event.start;
            entry.links.set_forward_thread(match entry.forward {
                0 => ForwardThread::Unknown,
                native => {
                    let thread = self.threads.get(&(DeviceKind::Cpu, HOST_PROCESS, native));
                    thread.map_or(ForwardThread::Elsewhere, |&id| ForwardThread::At(id))
                }
            });
            self.part.add_linked_event(entry.event, entry.links);
        }
        let record = |entry: &MemoryEntry| MemoryRecord {
            time: since(entry.time),
            ..entry.record
        };
        self.part.add_memory_records(self.memory.iter().map(record));
        let failed = self.failed.iter();
        RawResults {
            part: self.part,
            raw,
            events: self.events.iter().map(|entry| entry.position).collect(),
            memory: self.memory.iter().map(|entry| entry.position).collect(),
            failed: failed
                .map(|entry| (entry.position, record(entry)))
                .collect(),
            last_number: self.last_number,
        }
    }
}

/// Raw results do not tell which process they are of.
const HOST_PROCESS: u64 = 0;

/// Numbers that tie events together, in the 32 bits that a part has for them. Those that fit stay.
#[derive(Default)]
struct LinkNumbers {
    wide: FxHashMap<i128, u32>,
}

impl LinkNumbers {
    fn number(&mut self, number: i128) -> u32 {
        u32::try_from(number).unwrap_or_else(|_| {
            // From the top, where a recorder that counts from one comes last.
            let next = u32::MAX - self.wide.len() as u32;
            *self.wide.entry(number).or_insert(next)
        })
    }
}
