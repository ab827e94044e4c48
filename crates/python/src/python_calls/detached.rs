//! The innermost frame of a thread that has given up the GIL, read where the interpreter has it.
//!
//! torch gives the GIL up before an operator runs, so that nothing of Python may be called or
//! counted then. The thread itself waits in that operator, and with it its frame: what lies there
//! is its own and does not change. Where the frame lies differs between versions and is said
//! nowhere, so it is looked for once, from two frames that are known.

#![expect(
    unsafe_code,
    reason = "a frame of this thread is read while the thread does not hold the GIL"
)]

use std::ffi::c_int;
use std::sync::OnceLock;

use mindprof_pytorch::read_words;
use pyo3::ffi::{self, PyFrameObject};
use pyo3::prelude::*;
use pyo3::types::PyCFunction;

use super::interpreter::{Attached, interpreter};
use super::thread_state::ThreadState;

/// So many words of what the interpreter knows of a frame are looked at.
const FRAME_WORDS: usize = 10;

/// So many words of what lies between the state and the frame, up to 3.12.
const LINK_WORDS: usize = 2;

/// Objects that lie at odd addresses are marked so; from 3.14 on the code is.
const MARKS: u64 = 3;

static PATH: OnceLock<Option<Path>> = OnceLock::new();

/// The way from a thread's state to its innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Path {
    /// The word of the state.
    state: usize,
    /// The word of what that points to, which is not the frame up to 3.12.
    link: Option<usize>,
    /// The words of the frame that are its object and its code.
    object: usize,
    code: usize,
}

/// The innermost frame of a thread that waits in a function without the GIL.
#[derive(Clone, Copy)]
pub(super) struct DetachedFrame {
    frame: *mut PyFrameObject,
    code: u64,
}

impl DetachedFrame {
    /// Returns the innermost frame of the calling thread, if it has an object, as every frame has
    /// that the hook was told of.
    #[inline]
    pub(super) fn innermost(thread: ThreadState<'_>) -> Option<Self> {
        let path = PATH.get().copied().flatten()?;
        // SAFETY: the state is of this thread, which waits in a function that its innermost frame
        // called: that frame lives, and so does what leads to it.
        unsafe {
            let mut frame = thread.word(path.state) as *const u64;
            if let Some(link) = path.link
                && !frame.is_null()
            {
                frame = frame.add(link).read() as *const u64;
            }
            if frame.is_null() {
                return None;
            }
            let object = frame.add(path.object).read() as *mut PyFrameObject;
            (!object.is_null()).then(|| Self {
                frame: object,
                code: frame.add(path.code).read() & !MARKS,
            })
        }
    }

    /// Returns what tells the frame apart from others that live.
    #[inline]
    pub(super) fn identity(self) -> usize {
        self.frame as usize
    }

    /// Returns what tells its code apart from others that live.
    #[inline]
    pub(super) fn code(self) -> usize {
        self.code as usize
    }

    /// Returns the position of the instruction that it is at.
    #[inline]
    pub(super) fn instruction(self) -> Option<c_int> {
        let instruction = interpreter()?.instruction?;
        // SAFETY: the frame lives, by `innermost`, and the function only reads it.
        Some(unsafe { instruction(self.frame) })
    }

    /// Returns the line that it is at.
    #[cold]
    pub(super) fn line(self) -> c_int {
        // SAFETY: as in `instruction`: what is read of the code never changes.
        unsafe { ffi::PyFrame_GetLineNumber(self.frame) }
    }
}

/// Finds out where frames lie, once. Where that fails, operators without the GIL have the stack of
/// the native call that they are in, or none.
pub(super) fn find_path(py: Python<'_>) {
    if PATH.get().is_none() {
        // Not within the cell: the search runs Python, which lets other threads in here too, and
        // they would wait for the cell with the GIL held. Who comes second finds the same.
        let found = search(py).ok().flatten();
        let _ = PATH.set(found);
    }
}

/// Returns the only path that leads to the innermost frame both here and one call deeper.
fn search(py: Python<'_>) -> PyResult<Option<Path>> {
    let paths = candidates(Attached::new(py));
    let deeper = PyCFunction::new_closure(py, None, None, |arguments, _| {
        let paths = candidates(Attached::new(arguments.py()));
        FOUND.with(|found| found.replace(paths));
    })?;
    py.eval(c"lambda call: call()", None, None)?
        .call1((deeper,))?;
    let deeper = FOUND.with(std::cell::RefCell::take);
    let mut both = paths.into_iter().filter(|path| deeper.contains(path));
    Ok(match (both.next(), both.next()) {
        (Some(path), None) => Some(path),
        _ => None,
    })
}

thread_local! {
    static FOUND: std::cell::RefCell<Vec<Path>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Returns every path that leads to the innermost frame of this thread.
fn candidates(attached: Attached<'_>) -> Vec<Path> {
    let (Some(thread), Some(frame)) = (ThreadState::current(), attached.current_frame()) else {
        return Vec::new();
    };
    let (object, code) = (frame.identity() as u64, frame.code().as_ptr() as u64);
    let mut found = Vec::new();
    let mut look_at = |address: u64, state: usize, link: Option<usize>| {
        let Some(words) = read_words::<FRAME_WORDS>(address) else {
            return;
        };
        let mut codes = words.iter().map(|word| word & !MARKS);
        if let (Some(object), Some(code)) = (
            words.iter().position(|&word| word == object),
            codes.position(|word| word == code),
        ) {
            found.push(Path {
                state,
                link,
                object,
                code,
            });
        }
    };
    for state in 1..ThreadState::WORDS {
        let address = thread.word(state) as u64;
        look_at(address, state, None);
        if let Some(links) = read_words::<LINK_WORDS>(address) {
            for (link, &address) in links.iter().enumerate() {
                look_at(address, state, Some(link));
            }
        }
    }
    found
}
