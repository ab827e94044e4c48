//! An open window of the recorder, as Python holds it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mindprof_model::{HostTotals, LossCause, Metadata, Part};
use mindprof_pytorch::{Attachment, MemoryReport, Wanted as WantedOfTorch};
use mindprof_record::{Calls, Capture, Options, Session as Window, ThreadKey};
use mindprof_trace::{ReadOptions, read_trace_from};
use pyo3::prelude::*;

use crate::enter::Enter;
use crate::error::Error;
use crate::host_operators::DeviceColumns;
use crate::profile::Profile;
use crate::python_calls::{Following, Wanted};
use crate::raw_results::read_part;
use crate::thread_names::{ThreadNames, thread_names};
use crate::torch_probe::observer;

/// Records from its construction until `stop()`.
#[pyclass(frozen, weakref, module = "mindprof._core")]
pub(crate) struct Session {
    state: Mutex<State>,
}

/// Where a session is in its life: it has a window until it is closed, and a capture from then on.
#[derive(Default)]
struct State {
    window: Option<Window>,
    /// What follows Python's calls while the window is open, if it wants them.
    following: Option<Following>,
    /// What has torch tell of its operators while the window is open, if it was asked to.
    attachment: Option<Attachment>,
    /// Whether the window wants the inputs of operators.
    wants_inputs: bool,
    capture: Option<Capture>,
    /// What others report of the window while it is open.
    attached: Vec<Part>,
    /// What the profile says about itself.
    facts: Metadata,
    /// The only thread that is wanted; none means all.
    thread: Option<ThreadKey>,
    /// What threads are called, by number, in place of their own names.
    thread_names: ThreadNames,
}

/// What Python says about a session, by the names of its attributes.
#[expect(clippy::struct_excessive_bools, reason = "they are torch's flags")]
struct SessionOptions {
    record_shapes: bool,
    profile_memory: bool,
    with_flops: bool,
    results: bool,
    with_stack: bool,
    with_modules: bool,
    stack_depth: usize,
    source_roots: Vec<String>,
    budget_bytes: usize,
    all_threads: bool,
}

impl FromPyObject<'_, '_> for SessionOptions {
    type Error = PyErr;

    /// Written out, because the derived one keeps the names behind a lock, which a fork while
    /// another thread makes its first session would leave locked in the child for ever.
    fn extract(options: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            record_shapes: options.getattr("record_shapes")?.extract()?,
            profile_memory: options.getattr("profile_memory")?.extract()?,
            with_flops: options.getattr("with_flops")?.extract()?,
            results: options.getattr("results")?.extract()?,
            with_stack: options.getattr("with_stack")?.extract()?,
            with_modules: options.getattr("with_modules")?.extract()?,
            stack_depth: options.getattr("stack_depth")?.extract()?,
            source_roots: options.getattr("source_roots")?.extract()?,
            budget_bytes: options.getattr("budget_bytes")?.extract()?,
            all_threads: options.getattr("all_threads")?.extract()?,
        })
    }
}

#[pymethods]
impl Session {
    /// If it `hears_torch`, torch tells of its operators from the first moment on, with all that is
    /// wanted of them; of memory, [`Session::observe_torch`] has it told.
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
        let wanted = Wanted {
            calls: match (options.with_stack, options.with_modules) {
                (true, _) => Calls::All,
                (false, true) => Calls::Modules,
                (false, false) => Calls::None,
            },
            depth: options.stack_depth,
            roots: options.source_roots,
        };
        let thread = (!options.all_threads).then(ThreadKey::current);
        let options = Options {
            // Operations are counted from shapes.
            inputs: options.record_shapes || options.with_flops,
            memory: options.profile_memory,
            results: options.results,
            calls: wanted.calls,
            budget_bytes: options.budget_bytes,
        };
        // Before the window opens: other threads' operators are in it from then on, and those that
        // another session is told of may come without inputs.
        let attachment = if hears_torch {
            let wanted = WantedOfTorch {
                inputs: options.inputs,
                memory: false,
            };
            Some(observer()?.attach(wanted).map_err(Error::from)?)
        } else {
            None
        };
        let window = Window::start(options);
        let following = if wanted.calls == Calls::None {
            None
        } else {
            Following::begin(py, wanted)?
        };
        let state = State {
            window: Some(window),
            following,
            attachment,
            wants_inputs: options.inputs,
            capture: None,
            attached: Vec::new(),
            facts,
            thread,
            thread_names: ThreadNames::default(),
        };
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// Has torch tell of its operators while the window is open, and of the memory of this thread
    /// if `memory` is true. Returns whether all of it is told of.
    fn observe_torch(&self, memory: bool) -> PyResult<bool> {
        let mut state = self.lock();
        if state.window.is_none() {
            return Ok(false);
        }
        let inputs = state.wants_inputs;
        let attachment = observer()?.attach(WantedOfTorch { inputs, memory });
        let attachment = attachment.map_err(Error::from)?;
        let is_heard = !matches!(attachment.memory(), Some(MemoryReport::SlotTaken));
        if memory && is_heard {
            HostTotals::SinceFirstProfiler.write(&mut state.facts);
        }
        state.attachment = Some(attachment);
        Ok(is_heard)
    }

    /// Keeps what begins from now on out of the window. Returns false if it is closed.
    fn pause(&self) -> bool {
        self.toggle(Window::pause)
    }

    /// Takes what begins from now on into the window again. Returns false if it is closed.
    fn resume(&self) -> bool {
        self.toggle(Window::resume)
    }

    /// Notes that a step of the profiler begins now. Returns false if the window is closed.
    fn mark_step(&self, number: u64) -> bool {
        let mut state = self.lock();
        let window = state.window.as_mut();
        window.map(|window| window.mark_step(number)).is_some()
    }

    /// Names a thread in place of its own name; the name of a main thread is that of its process.
    fn name_thread(&self, number: u64, name: String) {
        self.lock().thread_names.insert(number, name);
    }

    /// Takes what devices did into the window. Returns false if it is closed.
    fn add_device_events(&self, columns: DeviceColumns) -> PyResult<bool> {
        let part = columns.into_part()?;
        let mut state = self.lock();
        let is_open = state.window.is_some();
        if is_open {
            state.attached.push(part);
        }
        Ok(is_open)
    }

    /// Closes the window and returns what it holds, the same again at a second call.
    fn stop(&self, py: Python<'_>) -> Profile {
        Profile::from_capture(self.close(py))
    }

    /// Closes the window and returns what it holds together with what other processes recorded for
    /// it, each a trace. Those whose traces are missing are counted as a loss.
    fn attach_traces(
        &self,
        py: Python<'_>,
        traces: Vec<Vec<u8>>,
        missing: u64,
    ) -> PyResult<Profile> {
        let mut capture = self.close(py);
        let capture = py.enter(|| {
            for trace in traces {
                let reading = read_trace_from(trace.as_slice(), &ReadOptions::default())?;
                capture.attach_process(Part::from(reading.profile))?;
            }
            if missing > 0 {
                let part = loss_beside(&capture, LossCause::Workers, missing);
                capture.attach_process(part)?;
            }
            Ok::<_, mindprof_trace::Error>(capture)
        })?;
        self.lock().capture = Some(capture.clone());
        Ok(Profile::from_capture(capture))
    }

    /// Closes the window and returns what it holds together with what torch's own collector hands
    /// over; none if it has lost that, which is counted. `stacks` says whether it was asked for
    /// them.
    fn stop_with(
        &self,
        py: Python<'_>,
        result: Option<&Bound<'_, PyAny>>,
        stacks: bool,
    ) -> PyResult<Profile> {
        let inputs = self.lock().wants_inputs;
        let mut capture = self.close(py);
        let part = match result {
            Some(result) => read_part(result, inputs, stacks)?,
            None => loss_beside(&capture, LossCause::Collections, 1),
        };
        capture
            .attach(part)
            .map_err(mindprof_trace::Error::from)
            .map_err(Error::from)?;
        self.lock().capture = Some(capture.clone());
        Ok(Profile::from_capture(capture))
    }

    /// Returns one profile of this window and earlier ones, all of which end here if they have not.
    fn stop_after(&self, py: Python<'_>, earlier: Vec<PyRef<'_, Self>>) -> Profile {
        let mut capture = self.close(py);
        for session in earlier {
            capture.add_earlier(session.close(py));
        }
        Profile::from_capture(capture)
    }
}

/// Returns a part that holds nothing but what others lost while a window was open.
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

    fn close(&self, py: Python<'_>) -> Capture {
        // Without the lock: Python's objects are asked, and may come back here.
        let is_open = self.lock().window.is_some();
        let mut names = if is_open {
            thread_names(py)
        } else {
            ThreadNames::default()
        };
        let mut state = self.lock();
        names.extend(state.thread_names.drain());
        if let Some(window) = state.window.take() {
            let mut capture = window.stop();
            capture.name_threads(|number| names.get(&number).map(String::as_str));
            capture.metadata = state.facts.clone();
            if let Some(thread) = state.thread {
                capture.keep_thread(thread);
            }
            for part in state.attached.drain(..) {
                let attached = capture.attach(part);
                attached.expect("a part that was made of columns names what it holds");
            }
            state.capture = Some(capture);
            drop(state.following.take());
            drop(state.attachment.take());
        }
        let capture = state.capture.clone();
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
