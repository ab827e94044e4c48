//! The positions of the interpreter's data, as a probe found them.

use crate::{CodeLayout, TextLayout};

/// The places where the running interpreter keeps its threads, frames, code and texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its threads.
    pub threads: ThreadLayout,
    /// Their frames.
    pub frames: FrameLayout,
    /// The code of the frames.
    pub code: CodeLayout,
    /// The texts in the code.
    pub text: TextLayout,
}

/// The place of the list of threads. Indices count words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLayout {
    /// The address of the word that points to the state of the first thread.
    pub head: u64,
    /// The index of the pointer to the next state.
    pub next: usize,
    /// The index of the operating system's number of the thread.
    pub native: usize,
}

/// The place of a thread's frames, and the contents of a frame. Indices count words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLayout {
    /// The index in a thread's state of the pointer to its innermost frame, or to the structure
    /// between them.
    pub state: usize,
    /// The index in that structure, which exists up to 3.12.
    pub link: Option<usize>,
    /// The index in a frame of the pointer to the frame's object, which may be null.
    pub object: usize,
    /// The index of the pointer to its caller.
    pub previous: usize,
    /// The index of the pointer to its code, in which the lowest bits may be set.
    pub code: usize,
    /// The index of the pointer to its current instruction.
    pub instruction: usize,
    /// The index of its first local variable, in which the lowest bits may be set.
    pub local: usize,
}
