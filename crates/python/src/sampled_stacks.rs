//! Sampled stacks: no hook on calls. Operators read the frames of their own thread, and a sampler
//! reads those of all threads at intervals. Nobody takes the GIL.
//!
//! They read the interpreter's memory by a layout that `probe` finds in the running interpreter. If
//! it finds none, calls are traced instead.

#![expect(
    unsafe_code,
    reason = "a thread reads its own frames without the interpreter's help"
)]

use std::cell::{OnceCell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mindprof_record::{
    Stack, count_unseen_calls, fast_thread_local, wants_all_calls, wants_stacks,
};
use pyo3::ffi;
use pyo3::prelude::*;

use self::sampler::Sampler;
use self::walker::Walker;

mod places;
mod probe;
mod sampler;
mod walker;

fast_thread_local! {
    static WALKER: OnceCell<RefCell<Walker>> = OnceCell::new()
}

/// The code of functions that call modules, which they receive as their first argument.
// Relaxed: a thread that misses one names the function instead of the module.
static MODULE_CALLERS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// The numbers of threads whose calls are not sampled now. Threads beyond these are sampled.
// Relaxed: a sample more or less makes no difference.
static PAUSED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

static RUNNING: Mutex<Running> = Mutex::new(Running {
    process: 0,
    sessions: 0,
    sampler: None,
});

/// The sampler, which runs while a session needs it.
struct Running {
    /// The process that started it. A forked child has no sampler.
    process: u32,
    sessions: usize,
    sampler: Option<Sampler>,
}

/// A guard that samples until it is dropped. A session owns it while its window is open.
pub(crate) struct Sampling {
    process: u32,
}

impl Sampling {
    /// Begins to sample. Returns `None` if frames of this interpreter cannot be read.
    pub(crate) fn begin(py: Python<'_>) -> PyResult<Option<Self>> {
        let Some(layout) = probe::layout(py)? else {
            return Ok(None);
        };
        let process = std::process::id();
        let mut running = lock(&RUNNING);
        if running.process != process {
            // The sampler of the parent does not exist here: there is no thread to wait for.
            std::mem::forget(running.sampler.take());
            running.process = process;
            running.sessions = 0;
        }
        if running.sampler.is_none() {
            running.sampler = Sampler::start(layout);
        }
        running.sessions += 1;
        Ok(Some(Self { process }))
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        let mut running = lock(&RUNNING);
        if running.process != self.process {
            return;
        }
        running.sessions -= 1;
        if running.sessions == 0 {
            running.sampler = None;
        }
    }
}

/// Registers code that calls the module it receives as its first argument.
pub(crate) fn add_module_caller(code: &Bound<'_, PyAny>) {
    let address = code.as_ptr() as u64;
    for place in &MODULE_CALLERS {
        let found = place.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed);
        if found.is_ok() || found == Err(address) {
            return;
        }
    }
}

/// Stops sampling the calling thread until [`resume`]; its operators get the stack known now.
/// Returns whether it was being sampled.
pub(crate) fn pause() -> bool {
    if !wants_stacks() || wants_all_calls() {
        return false;
    }
    let stack = operator_stack();
    with_walker(|walker| walker.pause(stack));
    let number = own_number();
    let is_added = |place: &AtomicU64| {
        let added = place.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        added.is_ok()
    };
    PAUSED.iter().any(is_added);
    true
}

/// Samples the calling thread again.
pub(crate) fn resume() {
    with_walker(Walker::resume);
    let number = own_number();
    for place in &PAUSED {
        let _ = place.compare_exchange(number, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn is_paused(number: u64) -> bool {
    let mut paused = PAUSED.iter();
    paused.any(|place| place.load(Ordering::Relaxed) == number)
}

/// Returns the operating system's number of the calling thread.
pub(crate) fn own_number() -> u64 {
    // SAFETY: the function has no preconditions.
    u64::try_from(unsafe { libc::gettid() }).unwrap_or(0)
}

/// Calls `action` with this thread's walker. Returns `None` if the thread is ending, or if the
/// walker is in use already.
#[inline]
fn with_walker<T>(action: impl FnOnce(&mut Walker) -> T) -> Option<T> {
    let action = |walker: &OnceCell<RefCell<Walker>>| {
        let walker = walker.get_or_init(RefCell::default);
        let mut walker = walker.try_borrow_mut().ok()?;
        Some(action(&mut walker))
    };
    WALKER.try_with(action).ok().flatten()
}

#[inline]
fn calls_module(code: u64) -> bool {
    let mut callers = MODULE_CALLERS.iter();
    callers.any(|place| place.load(Ordering::Relaxed) == code)
}

/// Returns the Python stack that the calling thread is in.
#[inline]
pub(crate) fn operator_stack() -> Stack {
    let Some(layout) = probe::known_layout() else {
        return Stack::NONE;
    };
    // SAFETY: the function has no preconditions. It returns the state of this thread, whether it
    // holds the GIL or not, or null if it has none.
    let state = unsafe { ffi::PyGILState_GetThisThreadState() };
    if state.is_null() {
        return Stack::NONE;
    }
    // SAFETY: the state is that of the calling thread, which frees it only when it leaves the
    // interpreter. The thread is inside of a call that its innermost frame made, so all its frames
    // and their code stay alive until this function returns.
    let walk = |walker: &mut Walker| unsafe { walker.stack(layout, state as u64) };
    with_walker(walk).flatten().unwrap_or_else(|| {
        count_unseen_calls(1);
        Stack::NONE
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
