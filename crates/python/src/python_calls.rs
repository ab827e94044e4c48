//! Python's calls, as the interpreter's profile hook tells of them, and the stacks of operators.
//!
//! The hook is there only while a session wants it. Each thread has its own: the one that starts
//! gets it at once, new ones by `threading.setprofile`, running ones through their states. Where
//! another tool has it, ours stands back.

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
    Calls, Stack, fast_thread_local, recording_number, set_stack_source, wants_calls, wants_stacks,
};
use pyo3::exceptions::PyUserWarning;
use pyo3::ffi::{PyFrameObject, PyObject};
use pyo3::prelude::*;

use self::interned::CallNames;
use self::interpreter::Attached;
use self::shadow::Shadow;
use self::thread_state::{HookOwner, ThreadState, find_hook_word};
use crate::pending_exception::PendingException;
use crate::py_cache::classes;

mod detached;
mod interned;
mod interpreter;
mod modules;
mod names;
mod shadow;
mod thread_state;

/// What the interpreter says has happened.
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

/// How many times calls began to be followed: what threads know is of one time.
// Relaxed, here and below: all are written and read with the GIL held, but for reads that only
// decide to look again.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many calls deep a thread is followed.
static DEEPEST: AtomicUsize = AtomicUsize::new(0);

static SESSIONS: Mutex<Sessions> = Mutex::new(Sessions {
    process: 0,
    open: 0,
    with_stacks: 0,
});

/// The open sessions that want calls.
struct Sessions {
    /// In which process they were opened: those of the parent are closed in a forked child.
    process: u32,
    open: usize,
    with_stacks: usize,
}

/// Which recording, and which time of following, something belongs to.
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

/// Who has the hook of this thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Us,
    /// Us, from now on.
    New,
    Another,
}

/// What a session wants to follow.
pub(crate) struct Wanted {
    /// Which calls.
    pub(crate) calls: Calls,
    /// How many calls deep a thread is followed.
    pub(crate) depth: usize,
    /// What the names of source files are shortened by.
    pub(crate) roots: Vec<String>,
}

/// Follows calls while it lives.
pub(crate) struct Following {
    calls: Calls,
    process: u32,
}

impl Following {
    /// Begins to follow calls. The window of the session is open already.
    pub(crate) fn begin(py: Python<'_>, wanted: Wanted) -> PyResult<Option<Self>> {
        if !interpreter::is_supported() {
            let category = py.get_type::<PyUserWarning>();
            let message = c"Python calls cannot be followed on this system: there are no stacks";
            PyErr::warn(py, &category, message, 1)?;
            return Ok(None);
        }
        find_hook_word(py);
        detached::find_path(py);
        set_stack_source(operator_stack);
        names::set_roots(wanted.roots);
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
            // An interpreter that is ending calls no hook any more.
            Python::try_attach(|py| {
                let _pending = PendingException::set_aside(py);
                unfollow_threads(py);
            });
        }
    }
}

impl Sessions {
    /// Adds a session, and returns whether there was none. What threads know is void if it lacks
    /// what this one wants.
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

    /// Removes a session, and returns whether there is none any more.
    fn remove(&mut self, process: u32, calls: Calls) -> bool {
        if self.process != process {
            return false;
        }
        self.open -= 1;
        self.with_stacks -= usize::from(calls == Calls::All);
        self.open == 0
    }
}

/// Returns how many calls deep a thread is followed.
fn deepest() -> usize {
    DEEPEST.load(Ordering::Relaxed)
}

/// Says that `function` calls the module that it is given as `self`, so that its calls bear the
/// module's name.
#[pyfunction]
pub(crate) fn name_module_calls(function: &Bound<'_, PyAny>) -> PyResult<()> {
    modules::add_caller(function.getattr("__code__")?);
    Ok(())
}

/// Puts the hook into this thread, when the interpreter calls it as a profile function: in a new
/// thread, or where another tool has put back what it found.
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
    // Another tool may have had the hook until now.
    with_shadow(Shadow::forget);
    join(attached);
    Ok(())
}

/// Follows no calls of this thread until [`resume_calls`]: for what is called in between and
/// returns, such as the inside of an import. What was told before stays known. Returns whether it
/// was we who followed.
#[pyfunction]
pub(crate) fn pause_calls(py: Python<'_>) -> PyResult<bool> {
    let is_ours = wants_calls() && hook_owner(py)? == HookOwner::Us;
    if is_ours {
        with_shadow(|shadow| shadow.set_paused(true));
        Attached::new(py).remove_hook();
    }
    Ok(is_ours)
}

/// Follows the calls of this thread again, unless another tool does by now.
#[pyfunction]
pub(crate) fn resume_calls(py: Python<'_>) -> PyResult<()> {
    with_shadow(|shadow| shadow.set_paused(false));
    if wants_calls() && hook_owner(py)? == HookOwner::Nobody {
        Attached::new(py).set_hook(on_event, marker(py)?);
    }
    Ok(())
}

/// What `threading.setprofile` sets. Not by that function: a handler of a signal that raises may run
/// within it, and would leave the hook where it is.
const NEW_THREADS: &str = "_profile_hook";

/// Follows this thread, those that will begin, and those that run.
fn follow_threads(py: Python<'_>) -> PyResult<()> {
    let attached = Attached::new(py);
    let threading = py.import("threading")?;
    // Before the hook is there, so that it does not see our own calls.
    if threading.getattr(NEW_THREADS)?.is_none() && hook_owner(py)? == HookOwner::Nobody {
        threading.setattr(NEW_THREADS, marker(py)?)?;
        attached.set_hook_everywhere(on_event, marker(py)?);
    }
    claim_hook(attached);
    join(attached);
    Ok(())
}

/// Takes the hook out of this thread and keeps it out of new ones. Others find out by themselves at
/// their next call.
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
                // No other tool has shown itself, so that what other threads have is ours.
                attached.remove_hook_everywhere(on_event);
            }
        }
        Ok(())
    };
    // The modules are gone when the interpreter ends, and with them every call.
    let _ = remove();
    with_shadow(Shadow::forget);
    names::release();
}

/// Takes the hook of this thread if it is free, and returns who has it.
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
    claim().unwrap_or(Owner::Another)
}

/// Returns whose hook is called in this thread; where that cannot be read, whose function Python
/// says it is.
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

/// Returns what `sys.getprofile` returns while the hook is ours.
fn marker(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    Ok(classes(py)?.marker.bind(py))
}

/// Has this thread's stack known from now on.
fn join(attached: Attached<'_>) {
    if wants_stacks() {
        with_shadow(Shadow::operator_stack);
    } else if let Some(frame) = attached.current_frame() {
        with_shadow(|shadow| shadow.begin(frame));
    }
}

/// Returns the stack that an operator of this thread is called in.
fn operator_stack() -> Stack {
    with_shadow(Shadow::operator_stack).unwrap_or(Stack::NONE)
}

/// Fills the cells of this module at import, and registers it with the embedded runtime's binding.
pub(crate) fn prefill(py: Python<'_>) {
    CallNames::get(py);
    interpreter::is_supported();
    stack_notes::set_around(note_stack_around);
}

/// Calls `action`, which releases the GIL, with the current stack noted for the operators in it.
fn note_stack_around(action: &mut dyn FnMut()) {
    if !wants_stacks() {
        return action();
    }
    let before = with_shadow(Shadow::note_stack);
    action();
    if let Some(before) = before {
        with_shadow(|shadow| shadow.restore_note(before));
    }
}

/// Calls `action`, unless the thread is ending or is in such a call already: a finalizer can run
/// any code at any time.
#[inline]
fn with_shadow<T>(action: impl FnOnce(&mut Shadow) -> T) -> Option<T> {
    let action = |shadow: &OnceCell<RefCell<Shadow>>| {
        let shadow = shadow.get_or_init(RefCell::default);
        let mut shadow = shadow.try_borrow_mut().ok()?;
        Some(action(&mut shadow))
    };
    SHADOW.try_with(action).ok().flatten()
}

/// The hook. The program goes on whatever happens here: it never fails and never unwinds.
unsafe extern "C" fn on_event(
    _marker: *mut PyObject,
    frame: *mut PyFrameObject,
    what: c_int,
    argument: *mut PyObject,
) -> c_int {
    // SAFETY: the interpreter calls hooks with the GIL held, with a frame that runs, and at a call
    // of a function written in C with that function; both live as long as this call.
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
