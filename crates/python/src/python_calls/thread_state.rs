//! Reads thread states of the interpreter: whether the calling thread holds the GIL, and who owns
//! the hook of a thread.
//!
//! The interpreter is asked each time: a remembered address would prove nothing, because a state is
//! freed with its thread and another may reuse its address. The offset of the hook differs between
//! versions and is not documented: it is searched for once, in the state of a temporary thread.

#![expect(
    unsafe_code,
    reason = "reads the hook from the interpreter's thread state"
)]

use std::ffi::c_int;
use std::iter;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pyo3::ffi::{self, PyFrameObject, PyObject};
use pyo3::prelude::*;

use super::interpreter::{Attached, EachThread, Hook, Running, interpreter};
use crate::pending_exception::ignore_errors;

/// The index of the hook's word in a thread state, or zero while it is unknown.
// Relaxed: no other data is published through it, and a thread that misses it takes the slow path.
static HOOK_WORD: AtomicUsize = AtomicUsize::new(0);

/// The owner of a thread's hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookOwner {
    Us,
    Another,
    Nobody,
    /// The location of hooks is unknown.
    Unknown,
}

/// A thread state of the interpreter, mostly that of the calling thread. It is used at once and
/// never stored, because the interpreter frees it with the thread.
#[derive(Clone, Copy)]
pub(super) struct ThreadState<'py> {
    words: NonNull<AtomicUsize>,
    /// Proof that the calling thread holds the GIL, if it does.
    attached: Option<Attached<'py>>,
}

impl<'py> ThreadState<'py> {
    /// The number of words of a state that may be read. In every version a state is longer, and the
    /// hook and the frame are among these words.
    pub(super) const WORDS: usize = 24;

    /// Returns the state of the calling thread, whether it holds the GIL or has released it.
    /// Returns `None` if the thread has no state.
    #[inline]
    pub(super) fn current() -> Option<Self> {
        let (own, is_attached) = match interpreter()?.running {
            // SAFETY: the functions have no preconditions. The first one returns the state of this
            // thread if it holds the GIL, the second one returns it in any case.
            Running::OfThisThread(running) => unsafe {
                let own = running();
                if own.is_null() {
                    (ffi::PyGILState_GetThisThreadState(), false)
                } else {
                    (own, true)
                }
            },
            // SAFETY: the functions have no preconditions. `running` returns the state of whichever
            // thread holds the GIL, which is compared and not dereferenced. While this thread has a
            // state, no other state can have the same address.
            Running::OfAnyThread(running) => unsafe {
                let own = ffi::PyGILState_GetThisThreadState();
                (own, own == running())
            },
        };
        Some(Self {
            words: NonNull::new(own.cast())?,
            // SAFETY: the thread state that holds the GIL is that of this thread, and the caller of
            // the recorder holds the GIL until the recorder returns.
            attached: is_attached.then(|| Attached::new(unsafe { Python::assume_attached() })),
        })
    }

    /// Returns the proof that this thread holds the GIL, if it does.
    #[inline]
    pub(super) fn attached(self) -> Option<Attached<'py>> {
        self.attached
    }

    /// Returns the owner of the thread's hook, where `hook` is ours.
    #[inline]
    pub(super) fn hook_owner(self, hook: Hook) -> HookOwner {
        match HOOK_WORD.load(Ordering::Relaxed) {
            0 => HookOwner::Unknown,
            word => match self.word(word) {
                0 => HookOwner::Nobody,
                found if found == hook as usize => HookOwner::Us,
                _ => HookOwner::Another,
            },
        }
    }

    /// Returns a word of the state.
    #[inline]
    pub(super) fn word(self, index: usize) -> usize {
        // SAFETY: callers pass an index below [`Self::WORDS`], and a state is longer than that. The
        // state is alive: it is that of the calling thread, which frees it only when it leaves the
        // interpreter, or one that `states` has just listed. Relaxed: a thread that holds the GIL
        // may set the hook of one that does not, and both the old and the new value are correct
        // then.
        unsafe { self.words.add(index).as_ref() }.load(Ordering::Relaxed)
    }
}

/// Installs `hook` in every running thread that has none.
pub(super) fn set_free_hooks(
    attached: Attached<'_>,
    each_thread: &EachThread,
    hook: Hook,
    marker: &Bound<'_, PyAny>,
) {
    let is_free = |state: &ThreadState<'_>| state.hook_owner(hook) == HookOwner::Nobody;
    change_hooks(
        attached,
        each_thread,
        is_free,
        (Some(hook), marker.as_ptr()),
    );
}

/// Removes `hook` from every running thread.
pub(super) fn remove_own_hooks(attached: Attached<'_>, each_thread: &EachThread, hook: Hook) {
    let is_own = |state: &ThreadState<'_>| state.hook_owner(hook) == HookOwner::Us;
    change_hooks(attached, each_thread, is_own, (None, ptr::null_mut()));
}

/// Sets the hook and its marker in each thread for which `is_to_change` holds. Changes nothing if
/// the location of hooks is unknown.
fn change_hooks(
    attached: Attached<'_>,
    each_thread: &EachThread,
    is_to_change: impl Fn(&ThreadState<'_>) -> bool,
    (hook, marker): (Option<Hook>, *mut PyObject),
) {
    // Setting a hook calls the program's audit hooks, during which threads may end. The states are
    // therefore listed again each time, and none is used afterwards.
    for _ in 0..states(attached, each_thread).count() {
        let Some(state) = states(attached, each_thread).find(|state| is_to_change(state)) else {
            return;
        };
        // SAFETY: the GIL is held, and no code has run since the interpreter listed the state, so
        // it is alive. The hook never unwinds, and the interpreter takes its own reference to the
        // marker. If an audit hook objects, the remaining threads are left unchanged.
        unsafe {
            let state = state.words.as_ptr().cast();
            if (each_thread.set_profile)(state, hook, marker) != 0 {
                let py = attached.python();
                ignore_errors(py, Err::<(), _>(PyErr::fetch(py)));
                return;
            }
        }
    }
}

/// Iterates over the states of the interpreter's threads. They stay valid while no other code runs:
/// a thread frees its state with the GIL held, and new states are inserted before the first.
fn states<'py>(
    attached: Attached<'py>,
    each_thread: &EachThread,
) -> impl Iterator<Item = ThreadState<'py>> {
    let state = move |pointer: *mut ffi::PyThreadState| {
        NonNull::new(pointer.cast()).map(|words| ThreadState {
            words,
            attached: Some(attached),
        })
    };
    // SAFETY: the GIL is held, so there is an interpreter, and none of its states is freed.
    let first = state(unsafe { (each_thread.first)(ffi::PyInterpreterState_Get()) });
    let next = each_thread.next;
    iter::successors(first, move |previous| {
        // SAFETY: the GIL is held, so `previous` and its successors are still alive.
        state(unsafe { next(previous.words.as_ptr().cast()) })
    })
}

/// Searches for the location of hooks, once per process. While it is unknown, every operator asks
/// Python for the owner of the hook.
pub(super) fn find_hook_word(py: Python<'_>) {
    if HOOK_WORD.load(Ordering::Relaxed) != 0 {
        return;
    }
    let search = || Python::attach(|py| search_hook_word(Attached::new(py)));
    let found = py.detach(|| {
        let thread = thread::Builder::new().name("mindprof-hook".to_owned());
        thread.spawn(search).ok()?.join().ok().flatten()
    });
    HOOK_WORD.store(found.unwrap_or(0), Ordering::Relaxed);
}

/// Returns the index of the only word of this thread's state that contains the hook while it is
/// installed, and zero before and after.
fn search_hook_word(attached: Attached<'_>) -> Option<usize> {
    let state = ThreadState::current()?;
    let places_of = |value: usize| {
        (1..ThreadState::WORDS)
            .filter(move |&word| state.word(word) == value)
            .collect::<Vec<_>>()
    };
    let before = places_of(0);
    attached.set_hook(
        ignore_event,
        &attached.python().None().into_bound(attached.python()),
    );
    let places = places_of(ignore_event as Hook as usize);
    attached.remove_hook();
    let &[word] = places.as_slice() else {
        return None;
    };
    (before.contains(&word) && state.word(word) == 0).then_some(word)
}

unsafe extern "C" fn ignore_event(
    _argument: *mut PyObject,
    _frame: *mut PyFrameObject,
    _what: c_int,
    _value: *mut PyObject,
) -> c_int {
    0
}
