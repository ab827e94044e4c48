//! Finds the place where the running interpreter keeps the frames of a thread.
//!
//! This is not documented and differs between versions. It is searched for until it is found, in two
//! frames that call each other and whose code, instructions and arguments are known. A position
//! counts only if it is the only one that fits.

#![expect(unsafe_code, reason = "asks for the state of the calling thread")]

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;

use mindprof_frames::{FrameLayout, read_words};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;

use super::interpreter::{self, Attached, Frame};

/// The numbers of words of each structure that are searched: the thread's state, the structure
/// between it and the frame, which exists up to 3.12, and the frame.
const STATE_WORDS: usize = 48;
const LINK_WORDS: usize = 2;
const FRAME_WORDS: usize = 14;

/// The bits of pointers that are marks, from 3.14 on.
const MARKS: u64 = 3;

static FRAMES: OnceLock<FoundFrames> = OnceLock::new();

thread_local! {
    static FOUND: Cell<Option<FoundFrames>> = const { Cell::new(None) };
}

/// The place of frames, and the offset of the first instruction in their code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundFrames {
    pub(crate) frames: FrameLayout,
    pub(crate) instructions: u64,
}

/// A frame of this thread, as the interpreter describes it.
struct KnownFrame {
    /// The addresses of its object and of its code.
    object: u64,
    code: u64,
    /// The offset of its current instruction.
    instruction: c_int,
}

/// Returns where frames are, if it was found.
#[inline]
pub(crate) fn known() -> Option<&'static FoundFrames> {
    FRAMES.get()
}

/// Searches for frames, unless they were found before.
///
/// # Errors
/// If the search is interrupted. The next call repeats it.
pub(crate) fn find(py: Python<'_>) -> PyResult<()> {
    if FRAMES.get().is_none() && interpreter::is_supported() {
        // Not inside of the cell's initializer: the search runs Python code, which lets other
        // threads come here too, and they would wait for the cell with the GIL held. All threads
        // find the same.
        if let Some(found) = search(py)? {
            let _ = FRAMES.set(found);
        }
    }
    Ok(())
}

fn search(py: Python<'_>) -> PyResult<Option<FoundFrames>> {
    let object = || -> PyResult<_> { py.eval(c"object()", None, None) };
    let (outer, inner) = (object()?, object()?);
    let locals = [inner.as_ptr() as u64, outer.as_ptr() as u64];
    let looking = PyCFunction::new_closure(py, None, None, move |arguments, _| {
        FOUND.set(look(arguments.py(), locals));
    })?;
    FOUND.set(None);
    py.eval(
        c"lambda outer, inner, look: (lambda inner, look: look())(inner, look)",
        None,
        None,
    )?
    .call1((outer, inner, looking))?;
    Ok(FOUND.take())
}

/// Looks at the frames of the two functions above: the innermost and its caller.
fn look(py: Python<'_>, locals: [u64; 2]) -> Option<FoundFrames> {
    let known = known_frames(Attached::new(py))?;
    // SAFETY: the function has no preconditions.
    let state = unsafe { ffi::PyGILState_GetThisThreadState() } as u64;
    let states: [u64; STATE_WORDS] = read_words(state)?;
    let mut found = Vec::new();
    for (index, &word) in states.iter().enumerate().skip(1) {
        found.extend(layout_at(word, index, None, &known, locals));
        if let Some(links) = read_words::<LINK_WORDS>(word) {
            for (link, &word) in links.iter().enumerate() {
                found.extend(layout_at(word, index, Some(link), &known, locals));
            }
        }
    }
    only(found)
}

/// Returns the layout under which `inner` is the address of the innermost frame.
fn layout_at(
    inner: u64,
    state: usize,
    link: Option<usize>,
    known: &[KnownFrame; 2],
    locals: [u64; 2],
) -> Option<FoundFrames> {
    let words: [u64; FRAME_WORDS] = read_words(inner)?;
    let object = only(places(&words, known[0].object))?;
    let code = only(places(&words.map(|word| word & !MARKS), known[0].code))?;
    let caller_at = |address: u64| {
        let caller: [u64; FRAME_WORDS] = read_words(address)?;
        let is_caller = caller[object] == known[1].object && caller[code] & !MARKS == known[1].code;
        is_caller.then_some(caller)
    };
    let callers = words.iter().enumerate().filter_map(|(previous, &address)| {
        // A tool that evaluates frames itself, such as torch's compiler, leaves a frame of the
        // interpreter between the two from 3.12 on.
        let beyond = || caller_at(read_words::<FRAME_WORDS>(address)?[previous]);
        let caller = caller_at(address).or_else(beyond)?;
        Some((previous, caller))
    });
    let (previous, caller) = only(callers.collect())?;
    let offset = |frame: &KnownFrame, word: u64| {
        word.checked_sub(frame.code)?
            .checked_sub(u64::try_from(frame.instruction).ok()?)
            .filter(|offset| (1..4096).contains(offset))
    };
    let instructions = (0..FRAME_WORDS).filter_map(|index| {
        let offset_here = offset(&known[0], words[index])?;
        (offset(&known[1], caller[index]) == Some(offset_here)).then_some((index, offset_here))
    });
    let (instruction, instructions) = only(instructions.collect())?;
    let is_local =
        |&index: &usize| words[index] & !MARKS == locals[0] && caller[index] & !MARKS == locals[1];
    let local = only((0..FRAME_WORDS).filter(is_local).collect())?;
    Some(FoundFrames {
        frames: FrameLayout {
            state,
            link,
            object,
            previous,
            code,
            instruction,
            local,
        },
        instructions,
    })
}

/// Returns the innermost frame of this thread and its caller.
fn known_frames(attached: Attached<'_>) -> Option<[KnownFrame; 2]> {
    let describe = |frame: Frame<'_>| KnownFrame {
        object: frame.identity() as u64,
        code: frame.code().as_ptr() as u64,
        instruction: frame.instruction(),
    };
    let frame = attached.current_frame()?;
    Some([describe(frame), describe(frame.back()?)])
}

/// Returns the positions of a value.
pub(crate) fn places(words: &[u64], value: u64) -> Vec<usize> {
    let equal = words.iter().enumerate().filter(|&(_, &word)| word == value);
    equal.map(|(index, _)| index).collect()
}

/// Returns the element of a list that has exactly one.
pub(crate) fn only<T>(list: Vec<T>) -> Option<T> {
    let mut elements = list.into_iter();
    let first = elements.next()?;
    elements.next().is_none().then_some(first)
}
