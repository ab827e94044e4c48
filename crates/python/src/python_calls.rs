//! Follows Python calls through the interpreter's profile hook, and provides the stacks of
//! operators.
//!
//! The hook is installed only while a session needs it, per thread: in the starting thread at once,
//! in new threads through `threading`, and in running ones through their thread states. A thread
//! whose hook belongs to another tool is left alone.

#![expect(
    unsafe_code,
    reason = "the interpreter calls the hook with raw pointers"
)]

use std::cell::{OnceCell, RefCell};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mindprof_python_support::stack_notes;
use mindprof_record::{
    Calls, Stack, fast_thread_local, recording_number, wants_all_calls, wants_calls,
};
use pyo3::exceptions::PyUserWarning;
use pyo3::ffi::{PyFrameObject, PyObject};
use pyo3::prelude::*;

use self::interned::CallNames;
use self::interpreter::Attached;
use self::shadow::Shadow;
use self::thread_state::{HookOwner, ThreadState, find_hook_word};
use crate::pending_exception::{PendingException, ignore_errors};
use crate::py_cache::classes;

mod detached;
pub(crate) mod frame_layout;
mod interned;
mod interpreter;
mod modules;
mod names;
mod parked;
mod shadow;
mod thread_state;

/// The interpreter's numbers of profile events.
mod event {
    use std::ffi::c_int;

    pub(super) const CALL: c_int = 0;
    pub(super) const RETURN: c_int = 3;
    pub(super) const NATIVE_CALL: c_int = 4;
    pub(super) const NATIVE_EXCEPTION: c_int = 5;
    pub(super) const NATIVE_RETURN: c_int = 6;
}

fast_thread_local! {
    static SHADOW: OnceCell<RefCell<Shadow>> = OnceCell::new()
}

/// Counts the times that following calls began. A thread's knowledge is valid for one of them.
// Relaxed, here and below: they are written and read with the GIL held, except for reads that only
// trigger another look.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The maximum depth of calls to follow per thread.
static DEEPEST: AtomicUsize = AtomicUsize::new(0);

static SESSIONS: Mutex<Sessions> = Mutex::new(Sessions {
    process: 0,
    open: 0,
    with_stacks: 0,
});

/// The open sessions that record calls.
struct Sessions {
    /// The process that opened them. In a forked child, the sessions of its parent are closed.
    process: u32,
    open: usize,
    with_stacks: usize,
}

/// Identifies a recording and the generation of following calls within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Key {
    recording: u32,
    generation: u32,
}

impl Key {
    #[inline]
    fn now() -> Self {
        Self {
            recording: recording_number(),
            generation: GENERATION.load(Ordering::Relaxed),
        }
    }
}

/// The owner of this thread's hook after an attempt to claim it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Us,
    /// Us, as of this attempt.
    New,
    Another,
}

/// The calls that a session records.
pub(crate) struct Wanted {
    /// The kinds of calls to follow.
    pub(crate) calls: Calls,
    /// The maximum depth of calls to follow per thread.
    pub(crate) depth: usize,
}

/// A guard that follows calls until it is dropped. A session owns it while its window is open.
pub(crate) struct Following {
    calls: Calls,
    process: u32,
}

impl Following {
    /// Begins to follow calls. The session's window must already be open. Warns and returns `None`
    /// on systems where calls cannot be followed.
    pub(crate) fn begin(py: Python<'_>, wanted: Wanted) -> PyResult<Option<Self>> {
        if !interpreter::is_supported() {
            let category = py.get_type::<PyUserWarning>();
            let message =
                c"Python calls cannot be recorded on this system: there will be no stacks";
            PyErr::warn(py, &category, message, 1)?;
            return Ok(None);
        }
        find_hook_word(py);
        frame_layout::find(py)?;
        let process = std::process::id();
        let is_first = lock(&SESSIONS).add(process, wanted.calls);
        let deepest = if is_first { 0 } else { deepest() };
        DEEPEST.store(deepest.max(wanted.depth), Ordering::Relaxed);
        let following = Self {
            calls: wanted.calls,
            process,
        };
        follow_threads(py)?;
        Ok(Some(following))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let is_last = lock(&SESSIONS).remove(self.process, self.calls);
        if is_last {
            // An interpreter that is shutting down no longer calls hooks.
            Python::try_attach(|py| {
                let _pending = PendingException::set_aside(py);
                unfollow_threads(py);
            });
        }
    }
}

impl Sessions {
    /// Adds a session and returns whether it is the first one. Starts a new generation if threads
    /// know less than the session needs.
    fn add(&mut self, process: u32, calls: Calls) -> bool {
        if self.process != process {
            *self = Self {
                process,
                open: 0,
                with_stacks: 0,
            };
        }
        let is_first = self.open == 0;
        let wants_all = calls == Calls::All;
        if is_first || (wants_all && self.with_stacks == 0) {
            GENERATION.fetch_add(1, Ordering::Relaxed);
        }
        self.open += 1;
        self.with_stacks += usize::from(wants_all);
        is_first
    }

    /// Removes a session and returns whether it was the last one.
    fn remove(&mut self, process: u32, calls: Calls) -> bool {
        if self.process != process {
            return false;
        }
        self.open -= 1;
        self.with_stacks -= usize::from(calls == Calls::All);
        self.open == 0
    }
}

/// Returns the maximum depth of calls to follow per thread.
fn deepest() -> usize {
    DEEPEST.load(Ordering::Relaxed)
}

/// Registers code that calls the module it receives as `self`. Its calls are then recorded under the
/// module's name.
pub(crate) fn add_module_caller(code: Bound<'_, PyAny>) {
    modules::add_caller(code);
}

/// Registers `function` as one that optimizers call on themselves at each step. The event tree then
/// shows the optimizer's tensors.
#[pyfunction]
pub(crate) fn name_optimizer_steps(function: &Bound<'_, PyAny>) -> PyResult<()> {
    modules::add_step(function.getattr("__code__")?);
    Ok(())
}

/// Installs the hook in this thread. The interpreter calls it as a Python profile function: in a
/// new thread, or after another tool has restored it.
#[pyfunction]
pub(crate) fn follow_thread(
    py: Python<'_>,
    frame: &Bound<'_, PyAny>,
    event: &Bound<'_, PyAny>,
    argument: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let _ = (frame, event, argument);
    let attached = Attached::new(py);
    if !wants_calls() {
        attached.remove_hook();
        return Ok(());
    }
    attached.set_hook(on_event, marker(py)?);
    // Until now another tool may have owned the hook, and calls may have been missed.
    with_shadow(Shadow::forget);
    join(attached);
    Ok(())
}

/// Stops following calls of this thread until [`resume`], for calls that return in between,
/// such as those inside of an import. The known stack is kept. Returns whether calls were being
/// followed.
pub(crate) fn pause(py: Python<'_>) -> PyResult<bool> {
    let is_ours = wants_calls() && hook_owner(py)? == HookOwner::Us;
    if is_ours {
        with_shadow(|shadow| shadow.set_paused(true));
        Attached::new(py).remove_hook();
    }
    Ok(is_ours)
}

/// Follows the calls of this thread again, unless another tool has installed a hook meanwhile.
pub(crate) fn resume(py: Python<'_>) -> PyResult<()> {
    with_shadow(|shadow| shadow.set_paused(false));
    if wants_calls() && hook_owner(py)? == HookOwner::Nobody {
        Attached::new(py).set_hook(on_event, marker(py)?);
    }
    Ok(())
}

/// The attribute of `threading` that `threading.setprofile` sets. It is set directly, because a
/// signal handler that raises during that function would leave the hook installed.
const NEW_THREADS: &str = "_profile_hook";

/// Follows the calls of this thread, of future threads and of running ones.
fn follow_threads(py: Python<'_>) -> PyResult<()> {
    let attached = Attached::new(py);
    let threading = py.import("threading")?;
    // Done before the hook is installed, so that it does not see these calls.
    if threading.getattr(NEW_THREADS)?.is_none() && hook_owner(py)? == HookOwner::Nobody {
        threading.setattr(NEW_THREADS, marker(py)?)?;
        attached.set_hook_everywhere(on_event, marker(py)?);
    }
    claim_hook(attached);
    join(attached);
    Ok(())
}

/// Removes the hook from this thread and from future ones, and from running ones if all hooks are
/// ours. Threads that keep it remove it themselves at their next call.
fn unfollow_threads(py: Python<'_>) {
    let attached = Attached::new(py);
    let remove = || -> PyResult<()> {
        let is_here = hook_owner(py)? == HookOwner::Us;
        if is_here {
            attached.remove_hook();
        }
        let threading = py.import("threading")?;
        if is_ours(&threading.getattr(NEW_THREADS)?)? {
            threading.setattr(NEW_THREADS, py.None())?;
            if is_here {
                // No other tool has appeared, so the hooks of other threads are ours.
                attached.remove_hook_everywhere(on_event);
            }
        }
        Ok(())
    };
    // This fails only during interpreter shutdown, when the modules are gone.
    ignore_errors(py, remove());
    with_shadow(Shadow::forget);
    names::release();
}

/// Installs the hook in this thread if it has none, and returns the owner.
#[cold]
fn claim_hook(attached: Attached<'_>) -> Owner {
    let py = attached.python();
    let claim = || -> PyResult<Owner> {
        Ok(match hook_owner(py)? {
            HookOwner::Us => Owner::Us,
            HookOwner::Another | HookOwner::Unknown => Owner::Another,
            HookOwner::Nobody => {
                attached.set_hook(on_event, marker(py)?);
                Owner::New
            }
        })
    };
    ignore_errors(py, claim()).unwrap_or(Owner::Another)
}

/// Returns the owner of this thread's hook. If the thread state cannot be read, the answer comes
/// from `sys.getprofile`.
fn hook_owner(py: Python<'_>) -> PyResult<HookOwner> {
    let owner = ThreadState::current().map(|thread| thread.hook_owner(on_event));
    if let Some(owner @ (HookOwner::Us | HookOwner::Another | HookOwner::Nobody)) = owner {
        return Ok(owner);
    }
    let found = py
        .import(CallNames::get(py).sys.bind(py))?
        .call_method0(CallNames::get(py).getprofile.bind(py))?;
    Ok(if found.is_none() {
        HookOwner::Nobody
    } else if is_ours(&found)? {
        HookOwner::Us
    } else {
        HookOwner::Another
    })
}

fn is_ours(profile: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(profile.is(marker(profile.py())?))
}

/// Returns the object that `sys.getprofile` returns while the hook is ours.
fn marker(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    Ok(classes(py)?.marker.bind(py))
}

/// Captures the current stack of this thread, so that calls are followed from here.
fn join(attached: Attached<'_>) {
    if wants_all_calls() {
        with_shadow(Shadow::operator_stack);
    } else if let Some(frame) = attached.current_frame() {
        with_shadow(|shadow| shadow.begin(frame));
    }
}

/// Returns the Python stack of an operator that this thread calls.
pub(crate) fn operator_stack() -> Stack {
    with_shadow(Shadow::operator_stack).unwrap_or(Stack::NONE)
}

/// Fills the caches of this module at import, and registers it with the embedded runtime's binding.
pub(crate) fn prefill(py: Python<'_>) {
    CallNames::get(py);
    interpreter::is_supported();
    stack_notes::set_around(note_stack_around);
}

/// Calls `action`, which releases the GIL, after noting the current stack for operators inside of
/// it.
fn note_stack_around(action: &mut dyn FnMut()) {
    if !wants_all_calls() {
        return action();
    }
    let before = with_shadow(Shadow::note_stack);
    action();
    if let Some(before) = before {
        with_shadow(|shadow| shadow.restore_note(before));
    }
}

/// Calls `action` with this thread's shadow stack. Returns `None` if the thread is ending, or if
/// the stack is in use already, because a finalizer can run any code at any time.
#[inline]
fn with_shadow<T>(action: impl FnOnce(&mut Shadow) -> T) -> Option<T> {
    let action = |shadow: &OnceCell<RefCell<Shadow>>| {
        let shadow = shadow.get_or_init(RefCell::default);
        let mut shadow = shadow.try_borrow_mut().ok()?;
        Some(action(&mut shadow))
    };
    SHADOW.try_with(action).ok().flatten()
}

/// The profile hook. It never fails and never unwinds, so that the program is not disturbed.
unsafe extern "C" fn on_event(
    _marker: *mut PyObject,
    frame: *mut PyFrameObject,
    what: c_int,
    argument: *mut PyObject,
) -> c_int {
    // SAFETY: the interpreter calls hooks with the GIL held and with the running frame; `argument`
    // is null or an object, which is the function if a C function is called. Both stay alive during
    // the call.
    let (py, frame, function) = unsafe {
        let py = Python::assume_attached();
        let function = Borrowed::from_ptr_or_opt(py, argument);
        (py, Attached::new(py).frame(frame), function)
    };
    if !wants_calls() {
        Attached::new(py).remove_hook();
        with_shadow(Shadow::forget);
        return 0;
    }
    with_shadow(|shadow| match (what, function) {
        (event::CALL, _) => shadow.enter(frame),
        (event::RETURN, _) => shadow.leave(frame),
        (event::NATIVE_CALL, Some(function)) => shadow.enter_native(frame, &function),
        (event::NATIVE_RETURN | event::NATIVE_EXCEPTION, _) => shadow.leave_native(frame),
        _ => {}
    });
    0
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
