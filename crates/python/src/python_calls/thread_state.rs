//! What the interpreter knows of threads: whether the calling one holds the GIL, and whose hook is
//! called in it and in the others.
//!
//! The interpreter is asked each time. An address that was remembered proves nothing: a state is
//! freed with its thread, and the next one may lie where it was. Where in a state the hook lies
//! differs between versions and is said nowhere, so it is looked for once, in the state of a thread
//! that is made for that.

#![expect(
    unsafe_code,
    reason = "the hook is read out of the state that the interpreter has of this thread"
)]

use std::ffi::c_int;
use std::iter;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pyo3::ffi::{self, PyFrameObject, PyObject};
use pyo3::prelude::*;

use super::interpreter::{Attached, EachThread, Hook, Running, interpreter};

/// At which word of a state the hook lies; zero, where something else is, until it is known.
// Relaxed: it says all by itself, and whoever misses it takes the long way.
static HOOK_WORD: AtomicUsize = AtomicUsize::new(0);

/// Whose hook is called in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookOwner {
    Us,
    Another,
    Nobody,
    /// Where hooks lie is not known.
    Unknown,
}

/// The state that the interpreter has of a thread, mostly the calling one. Used at once, never kept.
#[derive(Clone, Copy)]
pub(super) struct ThreadState<'py> {
    words: NonNull<AtomicUsize>,
    /// The word that the calling thread holds the GIL, if it does.
    attached: Option<Attached<'py>>,
}

impl<'py> ThreadState<'py> {
    /// So many words of a state are looked at: every version has more, and the hook and the frame
    /// among the first.
    pub(super) const WORDS: usize = 24;

    /// Returns that of this thread, whether it holds the GIL or has given it up for a while; none
    /// if it has no state.
    #[inline]
    pub(super) fn current() -> Option<Self> {
        let (own, is_attached) = match interpreter()?.running {
            // SAFETY: the functions ask for nothing. The first returns the state of this thread
            // if that holds the GIL, the other its state in any case.
            Running::OfThisThread(running) => unsafe {
                let own = running();
                if own.is_null() {
                    (ffi::PyGILState_GetThisThreadState(), false)
                } else {
                    (own, true)
                }
            },
            // SAFETY: as above; the first returns the state of whichever thread holds the GIL,
            // which is compared and not followed. While this thread has a state, no other can have
            // one at its address.
            Running::OfAnyThread(running) => unsafe {
                let own = ffi::PyGILState_GetThisThreadState();
                (own, own == running())
            },
        };
        Some(Self {
            words: NonNull::new(own.cast())?,
            // SAFETY: the state that holds the GIL is this thread's, and holds it as long as the
            // call into the recorder lasts: whoever called does.
            attached: is_attached.then(|| Attached::new(unsafe { Python::assume_attached() })),
        })
    }

    /// Returns the word that this thread holds the GIL, if it does.
    #[inline]
    pub(super) fn attached(self) -> Option<Attached<'py>> {
        self.attached
    }

    /// Returns whose hook is called in this thread, `hook` being ours.
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
        // SAFETY: the state is this thread's own, which frees it only when it has left the
        // interpreter, or one that `states` came by; and it is longer than [`Self::WORDS`]. Relaxed:
        // a thread that holds the GIL may set the hook of one that does not, and either value is
        // right then.
        unsafe { self.words.add(index).as_ref() }.load(Ordering::Relaxed)
    }
}

/// Has `hook` called in every thread that runs already and where none is.
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

/// Has `hook` called in no thread any more.
pub(super) fn remove_own_hooks(attached: Attached<'_>, each_thread: &EachThread, hook: Hook) {
    let is_own = |state: &ThreadState<'_>| state.hook_owner(hook) == HookOwner::Us;
    change_hooks(attached, each_thread, is_own, (None, ptr::null_mut()));
}

/// Sets a hook and its marker in each thread that is one of those to change. None is where it is
/// not known whose hook a thread has.
fn change_hooks(
    attached: Attached<'_>,
    each_thread: &EachThread,
    is_to_change: impl Fn(&ThreadState<'_>) -> bool,
    (hook, marker): (Option<Hook>, *mut PyObject),
) {
    // Setting a hook calls the program's audit hooks, which may let threads end: each time the
    // states are looked through anew, and none is used after that.
    for _ in 0..states(attached, each_thread).count() {
        let Some(state) = states(attached, each_thread).find(|state| is_to_change(state)) else {
            return;
        };
        // SAFETY: the GIL is held, and no code has run since the state was among those of the
        // interpreter. The hook never unwinds, and the interpreter takes a reference of its own to
        // the marker. What an audit hook refuses is left as it is.
        unsafe {
            let state = state.words.as_ptr().cast();
            if (each_thread.set_profile)(state, hook, marker) != 0 {
                ffi::PyErr_Clear();
                return;
            }
        }
    }
}

/// Walks the states of the interpreter's threads. They are as long as no code runs: a thread frees
/// its own with the GIL held, and new ones are put before the first.
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
    // SAFETY: the GIL is held, so that there is an interpreter, and the states it has stay.
    let first = state(unsafe { (each_thread.first)(ffi::PyInterpreterState_Get()) });
    let next = each_thread.next;
    iter::successors(first, move |previous| {
        // SAFETY: as above.
        state(unsafe { next(previous.words.as_ptr().cast()) })
    })
}

/// Finds out where hooks lie, once. While that is not known, who has the hook is asked of Python at
/// every operator.
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

/// Returns the only word of this thread's state that is the hook while there is one, and zero
/// before and after.
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
