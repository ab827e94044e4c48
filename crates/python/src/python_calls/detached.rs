//! Reads the innermost frame of a thread that has released the GIL.
//!
//! torch releases the GIL before an operator runs, so no Python function may be called and no
//! reference counted. The thread itself waits in that operator, so its frame does not change.
//! `frame_layout` tells where the frame is.

#![expect(unsafe_code, reason = "reads a frame of this thread without the GIL")]

use std::ffi::c_int;

use pyo3::ffi::{self, PyFrameObject};

use super::frame_layout;
use super::interpreter::interpreter;
use super::thread_state::ThreadState;

/// The tag bits of pointers. From 3.14 on, the pointer to the code is tagged.
const MARKS: u64 = 3;

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
        let path = frame_layout::known()?.frames;
        let frame = Self::innermost_address(thread)?;
        if frame.is_null() {
            return None;
        }
        // SAFETY: as in `innermost_address`.
        unsafe {
            let object = frame.add(path.object).read() as *mut PyFrameObject;
            (!object.is_null()).then(|| Self {
                frame: object,
                code: frame.add(path.code).read() & !MARKS,
            })
        }
    }

    /// Returns whether the calling thread is known to have no frame, such as one of autograd's that
    /// runs no Python code.
    pub(super) fn has_none(thread: ThreadState<'_>) -> bool {
        Self::innermost_address(thread).is_some_and(<*const u64>::is_null)
    }

    /// Returns the address of the innermost frame of the calling thread: null if it has none, and
    /// `None` if the layout is unknown.
    #[inline]
    fn innermost_address(thread: ThreadState<'_>) -> Option<*const u64> {
        let path = frame_layout::known()?.frames;
        // SAFETY: the state is that of the calling thread, which waits in a function that its
        // innermost frame has called, if there is one. That frame and everything on the path to it
        // therefore stay alive, and the search has verified the path.
        unsafe {
            let frame = thread.word(path.state) as *const u64;
            match path.link {
                Some(link) if !frame.is_null() => Some(frame.add(link).read() as *const u64),
                Some(_) | None => Some(frame),
            }
        }
    }

    /// Returns whether the layout of frames is known.
    #[inline]
    pub(super) fn is_readable() -> bool {
        frame_layout::known().is_some()
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
