//! Reads the innermost frame of a thread that has released the GIL.
//!
//! torch releases the GIL before an operator runs, so no Python function may be called and no
//! reference counted. The thread itself waits in that operator, so its frame does not change. The
//! location of the frame differs between versions and is not documented: it is searched for once,
//! using two known frames.

#![expect(unsafe_code, reason = "reads a frame of this thread without the GIL")]

use std::ffi::c_int;
use std::sync::OnceLock;

use mindprof_frames::read_words;
use pyo3::ffi::{self, PyFrameObject};
use pyo3::prelude::*;
use pyo3::types::PyCFunction;

use super::interpreter::{Attached, interpreter};
use super::thread_state::ThreadState;

/// The number of words of an internal frame that are searched.
const FRAME_WORDS: usize = 10;

/// The number of words searched in the structure between thread state and frame, which exists up to
/// 3.12.
const LINK_WORDS: usize = 2;

/// The tag bits of pointers. From 3.14 on, the pointer to the code is tagged.
const MARKS: u64 = 3;

static PATH: OnceLock<Option<Path>> = OnceLock::new();

/// The path from a thread state to its innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Path {
    /// The index of the word in the thread state.
    state: usize,
    /// The index of the word in the structure between them, which exists up to 3.12.
    link: Option<usize>,
    /// The indices of the words in the frame that point to its object and its code.
    object: usize,
    code: usize,
}

/// The innermost frame of a thread that waits in a function without the GIL.
///
/// It is used at once and never stored, because it is valid only while the thread waits.
#[derive(Clone, Copy)]
pub(super) struct DetachedFrame {
    frame: *mut PyFrameObject,
    code: u64,
}

impl DetachedFrame {
    /// Returns the innermost frame of the calling thread. Returns `None` if the layout is unknown
    /// or the frame has no Python object; every frame that the hook has seen has one.
    #[inline]
    pub(super) fn innermost(thread: ThreadState<'_>) -> Option<Self> {
        let path = PATH.get().copied().flatten()?;
        // SAFETY: the state is that of the calling thread, which waits in a function that its
        // innermost frame has called. That frame and everything on the path to it therefore stay
        // alive, and `search` has verified the path.
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

    /// Returns whether the layout of frames is known.
    #[inline]
    pub(super) fn is_readable() -> bool {
        PATH.get().is_some_and(Option::is_some)
    }

    /// Returns the address that distinguishes the frame from other living frames.
    #[inline]
    pub(super) fn identity(self) -> usize {
        self.frame as usize
    }

    /// Returns the address that distinguishes its code from other living code objects.
    #[inline]
    pub(super) fn code(self) -> usize {
        self.code as usize
    }

    /// Returns the offset of the current instruction.
    #[inline]
    pub(super) fn instruction(self) -> Option<c_int> {
        let instruction = interpreter()?.instruction?;
        // SAFETY: `innermost` returns a frame of this thread, which waits in a call of it, so the
        // frame is alive; the function only reads it.
        Some(unsafe { instruction(self.frame) })
    }

    /// Returns the current line.
    #[cold]
    pub(super) fn line(self) -> c_int {
        // SAFETY: the frame is alive as in `instruction`, and the function reads only the frame and
        // the immutable code.
        unsafe { ffi::PyFrame_GetLineNumber(self.frame) }
    }
}

/// Searches for the path to frames, once per process. If it is not found, an operator without the
/// GIL gets the stack of the native call it runs in, or none.
///
/// # Errors
/// If the search is interrupted. The next call repeats it.
pub(super) fn find_path(py: Python<'_>) -> PyResult<()> {
    if PATH.get().is_none() {
        // Not inside of the cell's initializer: the search runs Python code, which lets other
        // threads come here too, and they would wait for the cell with the GIL held. All threads
        // find the same.
        let found = search(py)?;
        let _ = PATH.set(found);
    }
    Ok(())
}

/// Returns the path that leads to the innermost frame both here and one call deeper, if there is
/// exactly one.
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

/// Returns all paths that lead to the innermost frame of this thread.
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
