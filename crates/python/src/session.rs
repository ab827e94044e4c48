//! `Session`: one recording, as Python holds it.
//!
//! A session opens a window of the recorder, starts the providers that it needs (the profile hook
//! for Python calls, torch's observer for operators) and, when it is stopped, merges their results
//! into one [`Profile`].

use std::sync::{Mutex, MutexGuard, PoisonError};

use mindprof_answers::{SOURCES_KEY, Sources};
use mindprof_model::{
    HostTotals, LossCause, Metadata, OperatorLimit, Part, RecordedStacks, Recorder, WholeRun,
};
use mindprof_pytorch::{
    Attachment, MemoryReport, Wanted as WantedOfTorch, join_devices, join_records,
};
use mindprof_record::{
    Calls, Capture, Join, Keep, Only, Options, Session as Window, ThreadKey, recording_pace,
};
use mindprof_trace::{ReadOptions, read_trace_from};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::device_records::DeviceRecords;
use crate::enter::Enter;
use crate::error::Error;
use crate::held_tensors::{Holders, seen};
use crate::host_operators::DeviceColumns;
use crate::profile::Profile;
use crate::python_calls::{Following, Wanted};
use crate::raw_results::read_part;
use crate::sampled_stacks::Sampling;
use crate::source_files;
use crate::stack_source;
use crate::thread_names::{ThreadNames, thread_names};
use crate::torch_names::RecordedThread;
use crate::torch_probe::observer;

/// The metadata that tells how often a profiler of torch interrupted the recording of memory.
const MEMORY_GAPS_KEY: &str = "mindprof_memory_gaps";

/// A recording that lasts from construction until `stop()`.
///
/// The Python profilers create one per recording. It owns the recorder's window and everything that
/// reports into it, so that dropping a session ends the recording too.
#[pyclass(frozen, weakref, module = "mindprof._core")]
pub(crate) struct Session {
    state: Mutex<State>,
}

/// The state of a session: it holds a window while it is open and a capture once it is closed.
#[derive(Default)]
struct State {
    window: Option<Window>,
    /// The profile hook that follows Python calls while the window is open, if the session records
    /// them.
    following: Option<Following>,
    /// The sampler that runs while the window is open, if the session samples stacks.
    sampling: Option<Sampling>,
    /// The attachment through which torch reports operators while the window is open, if requested.
    attachment: Option<Attachment>,
    /// The thread that started the recording, while the window is open.
    recorded: Option<RecordedThread>,
    /// Whether the window records operators, and their inputs.
    wants_operators: bool,
    wants_inputs: bool,
    capture: Option<Capture>,
    /// The modules and optimizers that were seen until the window closed.
    holders: Holders,
    /// Events of devices that were added while the window was open.
    attached: Vec<Part>,
    /// Metadata for the profile.
    facts: Metadata,
    /// The only thread to keep, or `None` for all threads.
    thread: Option<ThreadKey>,
    /// Names that replace the threads' own names, by the system's thread id.
    thread_names: ThreadNames,
    /// Objects that are dropped when the window closes, such as replacements of attributes.
    held: Vec<Py<PyAny>>,
}

/// The metadata of a recording that traces calls although samples were requested, and its value.
const TRACED_INSTEAD_KEY: &str = "mindprof_traced_instead";
const TRACED_INSTEAD: &str =
    "\"frames of this interpreter cannot be read: every call is traced instead of sampled\"";

/// The attributes that the engine reads from the Python class `SessionOptions`.
#[expect(clippy::struct_excessive_bools, reason = "they are torch's flags")]
struct SessionOptions {
    records_inputs: bool,
    profile_memory: bool,
    with_flops: bool,
    results: bool,
    overloads: bool,
    with_stack: bool,
    sampled: bool,
    with_modules: bool,
    stack_depth: usize,
    source_roots: Vec<String>,
    budget_bytes: usize,
    keeps_last: bool,
    all_threads: bool,
    /// The words of an [`OperatorLimit`]; empty if all operators are recorded.
    only: Vec<String>,
}

impl FromPyObject<'_, '_> for SessionOptions {
    type Error = PyErr;

    /// Extracts the attributes one by one. `PyO3`'s derive would cache their names behind a lock,
    /// and a fork during another thread's first session would leave that lock held in the child
    /// forever.
    fn extract(options: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            records_inputs: options.getattr("records_inputs")?.extract()?,
            profile_memory: options.getattr("profile_memory")?.extract()?,
            with_flops: options.getattr("with_flops")?.extract()?,
            results: options.getattr("results")?.extract()?,
            overloads: options.getattr("overloads")?.extract()?,
            with_stack: options.getattr("with_stack")?.extract()?,
            sampled: options.getattr("sampled")?.extract()?,
            with_modules: options.getattr("with_modules")?.extract()?,
            stack_depth: options.getattr("stack_depth")?.extract()?,
            source_roots: options.getattr("source_roots")?.extract()?,
            budget_bytes: options.getattr("budget_bytes")?.extract()?,
            keeps_last: options.getattr("keeps_last")?.extract()?,
            all_threads: options.getattr("all_threads")?.extract()?,
            only: options.getattr("only")?.extract()?,
        })
    }
}

#[pymethods]
impl Session {
    /// Opens a window with the given options.
    ///
    /// If `hears_torch` is true, torch reports its operators from the start, with their inputs if
    /// the options ask for them. Memory is reported only after a call of
    /// [`Session::observe_torch`].
    #[new]
    #[pyo3(signature = (options, hears_torch=false))]
    fn new(py: Python<'_>, options: SessionOptions, hears_torch: bool) -> PyResult<Self> {
        let mut facts = Metadata::default();
        let said = [
            ("profile_memory", options.profile_memory),
            ("with_flops", options.with_flops),
        ];
        for (key, _) in said.into_iter().filter(|(_, is_on)| *is_on) {
            facts.set(key, "1");
        }
        stack_source::provide();
        if options.with_stack {
            source_files::set_roots(options.source_roots);
        }
        let sampling = if options.with_stack && options.sampled {
            let sampling = Sampling::begin(py)?;
            if sampling.is_none() {
                facts.set(TRACED_INSTEAD_KEY, TRACED_INSTEAD);
            }
            sampling
        } else {
            None
        };
        let wanted = Wanted {
            calls: match (options.with_stack, options.with_modules) {
                (true, _) if sampling.is_some() => Calls::Sampled,
                (true, _) => Calls::All,
                (false, true) => Calls::Modules,
                (false, false) => Calls::None,
            },
            depth: options.stack_depth,
        };
        Recorder {
            inputs: options.records_inputs,
            memory: options.profile_memory,
            stacks: match wanted.calls {
                Calls::Sampled => RecordedStacks::Sampled,
                Calls::All | Calls::Modules => RecordedStacks::Traced,
                Calls::None => RecordedStacks::None,
            },
            pace: Some(recording_pace()),
        }
        .write(&mut facts);
        let thread = (!options.all_threads).then(ThreadKey::current);
        let limit = if options.only.is_empty() {
            None
        } else {
            Some(parse_limit(&options.only)?)
        };
        let wants_operators = !limit.as_ref().is_some_and(OperatorLimit::is_ranges);
        let options = Options {
            inputs: options.records_inputs,
            memory: options.profile_memory,
            results: options.results,
            overloads: options.overloads,
            module_hierarchies: options.with_modules,
            only: limit.map_or(Only::ALL, Only::admitted_by),
            calls: wanted.calls,
            budget_bytes: options.budget_bytes,
            keep: if options.keeps_last {
                Keep::Last
            } else {
                Keep::First
            },
        };
        // Attached before the window opens: operators of other threads are recorded as soon as it
        // is open, and while only an earlier session is attached, they may arrive without inputs.
        let attachment = if hears_torch {
            let wanted = WantedOfTorch {
                operators: wants_operators,
                inputs: options.inputs,
                memory: false,
            };
            Some(observer()?.attach(wanted).map_err(Error::from)?)
        } else {
            None
        };
        let window = Window::start(options);
        let following = match wanted.calls {
            Calls::None | Calls::Sampled => None,
            Calls::Modules | Calls::All => Following::begin(py, wanted)?,
        };
        let state = State {
            window: Some(window),
            following,
            sampling,
            attachment,
            recorded: Some(RecordedThread::current()),
            wants_operators,
            wants_inputs: options.inputs,
            capture: None,
            holders: Holders::default(),
            attached: Vec::new(),
            facts,
            thread,
            thread_names: ThreadNames::default(),
            held: Vec::new(),
        };
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// Makes torch report its operators while the window is open, and this thread's allocations if
    /// `memory` is true. Returns false if the window is closed or allocations cannot be observed
    /// because another profiler occupies torch's slot.
    fn observe_torch(&self, memory: bool) -> PyResult<bool> {
        let mut state = self.lock();
        if state.window.is_none() {
            return Ok(false);
        }
        let attachment = observer()?.attach(WantedOfTorch {
            operators: state.wants_operators,
            inputs: state.wants_inputs,
            memory,
        });
        let attachment = attachment.map_err(Error::from)?;
        let is_heard = !matches!(attachment.memory(), Some(MemoryReport::SlotTaken));
        if memory && is_heard {
            HostTotals::SinceFirstProfiler.write(&mut state.facts);
        }
        state.attachment = Some(attachment);
        Ok(is_heard)
    }

    /// Returns how often a profiler of torch interrupted the recording of memory so far.
    fn memory_gaps(&self) -> usize {
        let state = self.lock();
        state.attachment.as_ref().map_or(0, Attachment::memory_gaps)
    }

    /// Keeps objects alive until the window closes. Their drop must run no Python code. They are
    /// dropped with the session if it is never stopped. Returns false if the window is closed.
    fn hold(&self, objects: Vec<Py<PyAny>>) -> bool {
        let mut state = self.lock();
        let is_open = state.window.is_some();
        if is_open {
            state.held.extend(objects);
        }
        is_open
    }

    /// Stops recording events that begin from now on. Returns false if the window is closed.
    fn pause(&self) -> bool {
        self.toggle(Window::pause)
    }

    /// Records events that begin from now on again. Returns false if the window is closed.
    fn resume(&self) -> bool {
        self.toggle(Window::resume)
    }

    /// Records that a step of the profiler begins now, or began before the window `at_start`.
    /// Returns false if the window is closed.
    #[pyo3(signature = (number, at_start = false))]
    fn mark_step(&self, number: u64, at_start: bool) -> bool {
        let mut state = self.lock();
        let Some(window) = state.window.as_mut() else {
            return false;
        };
        if at_start {
            window.begin_in_step(number);
        } else {
            window.mark_step(number);
        }
        true
    }

    /// Names a thread in place of its own name. The name of a main thread becomes that of its
    /// process.
    fn name_thread(&self, number: u64, name: String) {
        self.lock().thread_names.insert(number, name);
    }

    /// Adds events of devices to the recording. Returns false if the window is closed.
    fn add_device_events(&self, columns: DeviceColumns) -> PyResult<bool> {
        let part = columns.into_part()?;
        let mut state = self.lock();
        let is_open = state.window.is_some();
        if is_open {
            state.attached.push(part);
        }
        Ok(is_open)
    }

    /// Closes the window and returns its profile. Later calls return the same profile.
    fn stop(&self, py: Python<'_>) -> Profile {
        let capture = self.close(py);
        Profile::from_capture(capture, self.lock().holders.clone())
    }

    /// Closes the window and returns its profile merged with the traces of worker processes.
    /// `missing` workers that left no trace are counted as a loss.
    fn attach_traces(
        &self,
        py: Python<'_>,
        traces: Vec<Vec<u8>>,
        missing: u64,
    ) -> PyResult<Profile> {
        let mut capture = self.close(py);
        let capture = py.enter(|| {
            let mut given_up = 0;
            let mut sources = Sources::read(&capture.metadata).unwrap_or_default();
            for trace in traces {
                let reading = read_trace_from(trace.as_slice(), &ReadOptions::default())?;
                let mut part = Part::from(reading.profile);
                given_up += WholeRun::take_count(&mut part.metadata);
                // Files that only workers import are the user's own, too.
                sources.add(Sources::read(&part.metadata).unwrap_or_default());
                capture.attach_process(part)?;
            }
            if !sources.own.is_empty() {
                capture.metadata.set(SOURCES_KEY, sources.json());
            }
            if given_up > 0 {
                let mut part = Part::new();
                part.reference_unix_ns = capture.axis().reference_unix_ns();
                let count = given_up.to_string();
                part.metadata.set(WholeRun::ELSEWHERE_KEY, count);
                capture.attach_process(part)?;
            }
            if missing > 0 {
                let part = loss_beside(&capture, LossCause::Workers, missing);
                capture.attach_process(part)?;
            }
            Ok::<_, mindprof_trace::Error>(capture)
        })?;
        let mut state = self.lock();
        state.capture = Some(capture.clone());
        Ok(Profile::from_capture(capture, state.holders.clone()))
    }

    /// Closes the window and returns its profile merged with the devices' events, which torch's own
    /// collector recorded beside it. A `result` of `None` means that the collector lost them, which
    /// is counted as a loss.
    fn stop_with_devices(
        &self,
        py: Python<'_>,
        result: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Profile> {
        // Closed first, because reading takes time.
        self.close(py);
        let part = result.map(|result| read_part(result, false, false));
        let capture = self.close_with(py, part.transpose()?, join_devices)?;
        Ok(Profile::from_capture(capture, self.lock().holders.clone()))
    }

    /// Closes the window and returns its profile merged with the devices' events, from records that
    /// have ended.
    fn stop_with_records(&self, py: Python<'_>, records: &DeviceRecords) -> PyResult<Profile> {
        let records = records.take()?;
        let axis = self.close(py).axis();
        let part = py.enter(|| records.into_part(&axis))?;
        let capture = self.close_with(py, Some(part), join_records)?;
        Ok(Profile::from_capture(capture, self.lock().holders.clone()))
    }

    /// Closes the window and returns its profile merged with the result of torch's own collector. A
    /// `result` of `None` means that the collector lost it, which is counted as a loss. `stacks`
    /// tells whether the collector was configured to record stacks.
    fn stop_with(
        &self,
        py: Python<'_>,
        result: Option<&Bound<'_, PyAny>>,
        stacks: bool,
    ) -> PyResult<Profile> {
        let inputs = self.lock().wants_inputs;
        self.close(py);
        let part = result.map(|result| read_part(result, inputs, stacks));
        let mut capture = self.close_with(py, part.transpose()?, |_, _| ())?;
        Recorder::forget(&mut capture.metadata);
        let state = self.lock();
        let is_for_memory = stacks && inputs && state.facts.get("profile_memory").is_some();
        let mut profile = Profile::from_capture(capture, state.holders.clone());
        profile.collected = result
            .filter(|_| is_for_memory)
            .map(|it| it.clone().unbind());
        Ok(profile)
    }

    /// Closes this session and `earlier` ones, and returns one profile of all of them.
    fn stop_after(&self, py: Python<'_>, earlier: Vec<PyRef<'_, Self>>) -> Profile {
        let mut capture = self.close(py);
        for session in earlier {
            capture.add_earlier(session.close(py));
        }
        Profile::from_capture(capture, self.lock().holders.clone())
    }
}

/// Parses the words of `only`.
fn parse_limit(words: &[String]) -> PyResult<OperatorLimit> {
    let limit = OperatorLimit::parse(words.iter().map(String::as_str));
    limit.map_err(|problem| PyValueError::new_err(format!("only: {problem}")))
}

/// Returns the words of `only` as they are kept in profiles.
///
/// # Errors
/// If they make no sense.
#[pyfunction]
pub(crate) fn checked_only(words: Vec<String>) -> PyResult<Vec<String>> {
    parse_limit(&words).map(|limit| limit.words())
}

/// Returns a part that contains only a loss, on the time axis of `capture`.
fn loss_beside(capture: &Capture, cause: LossCause, count: u64) -> Part {
    let mut part = Part::new();
    part.reference_unix_ns = capture.axis().reference_unix_ns();
    part.add_loss(cause, count);
    part
}

impl Session {
    fn toggle(&self, action: impl FnOnce(&Window)) -> bool {
        self.lock().window.as_ref().map(action).is_some()
    }

    /// Closes the window, and attaches what torch's own collector recorded. A `part` of `None` means
    /// that the collector lost it.
    fn close_with(&self, py: Python<'_>, part: Option<Part>, join: Join) -> PyResult<Capture> {
        let mut capture = self.close(py);
        let part = part.unwrap_or_else(|| loss_beside(&capture, LossCause::Collections, 1));
        capture
            .attach_joined(part, join)
            .map_err(mindprof_trace::Error::from)
            .map_err(Error::from)?;
        self.lock().capture = Some(capture.clone());
        Ok(capture)
    }

    fn close(&self, py: Python<'_>) -> Capture {
        // Called without the lock: it reads Python objects, whose code may call this session again.
        let is_open = self.lock().window.is_some();
        let mut names = if is_open {
            thread_names(py)
        } else {
            ThreadNames::default()
        };
        let mut state = self.lock();
        // Dropped without the lock, because anything may happen then.
        let held = std::mem::take(&mut state.held);
        names.extend(state.thread_names.drain());
        if let Some(window) = state.window.take() {
            let has_stacks = state.following.is_some() || state.sampling.is_some();
            let mut capture = window.stop();
            capture.name_threads(|number| names.get(&number).map(String::as_str));
            capture.metadata = state.facts.clone();
            let gaps = state.attachment.as_ref().map_or(0, Attachment::memory_gaps);
            if gaps > 0 {
                capture.metadata.set(MEMORY_GAPS_KEY, gaps.to_string());
            }
            if let Some(sources) = source_files::own_sources().filter(|_| has_stacks) {
                capture.metadata.set(SOURCES_KEY, sources);
            }
            if let Some(thread) = state.thread {
                capture.keep_thread(thread);
            }
            for part in state.attached.drain(..) {
                let attached = capture.attach(part);
                attached.expect("a part that was made of columns names what it holds");
            }
            if state.following.is_some() {
                state.holders = seen(capture.axis());
            }
            state.capture = Some(capture);
            drop(state.following.take());
            drop(state.sampling.take());
            drop(state.attachment.take());
            drop(state.recorded.take());
        }
        let capture = state.capture.clone();
        drop(state);
        drop(held);
        capture.expect("a session without a window has a capture")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether anything is being profiled in this process.
#[pyfunction]
pub(crate) fn is_profiling() -> bool {
    mindprof_record::is_profiling()
}
