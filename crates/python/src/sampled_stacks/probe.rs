//! Finds where the running interpreter keeps threads, frames, code and texts.
//!
//! None of this is documented, and it differs between versions. Each position is searched for by
//! values that are known: two frames that call each other, with known code, instructions and
//! arguments; a code object with known attributes; a thread state that comes and goes. A position
//! counts only if it is the only one that fits. If one is missing, there is no layout.

#![expect(
    unsafe_code,
    reason = "creates a thread state to find the list of states"
)]

use std::cell::Cell;
use std::sync::OnceLock;

use mindprof_frames::{
    CodeLayout, FrameLayout, Layout, TextLayout, ThreadLayout, read_many, read_words,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString};

use crate::python_calls::{KnownFrame, known_frames};

/// The numbers of words of each structure that are searched.
const STATE_WORDS: usize = 48;
const LINK_WORDS: usize = 2;
const FRAME_WORDS: usize = 14;
const CODE_WORDS: usize = 28;
const INTERPRETER_WORDS: usize = 4096;

/// The bits of pointers that are marks, from 3.14 on.
const MARKS: u64 = 3;

/// A line that no other field of a code object equals.
const LINE: u32 = 123_456_789;

static LAYOUT: OnceLock<Option<Layout>> = OnceLock::new();

thread_local! {
    static FOUND: Cell<Option<FrameLayout>> = const { Cell::new(None) };
    static FIRST_INSTRUCTION: Cell<u64> = const { Cell::new(0) };
}

/// Returns the layout, if it was found before.
#[inline]
pub(super) fn known_layout() -> Option<&'static Layout> {
    LAYOUT.get().and_then(Option::as_ref)
}

/// Returns the layout, searching for it once per process.
///
/// # Errors
/// If the search is interrupted. The next call repeats it.
pub(super) fn layout(py: Python<'_>) -> PyResult<Option<&'static Layout>> {
    if LAYOUT.get().is_none() {
        // Not inside of the cell's initializer: the search runs Python code, which lets other
        // threads come here too, and they would wait for the cell with the GIL held.
        let found = search(py)?;
        let _ = LAYOUT.set(found);
    }
    Ok(known_layout())
}

fn search(py: Python<'_>) -> PyResult<Option<Layout>> {
    let Some((frames, instructions)) = search_frames(py)? else {
        return Ok(None);
    };
    let (Some(code), Some(text), Some(threads)) = (
        search_code(py, instructions)?,
        search_text(py),
        search_threads(),
    ) else {
        return Ok(None);
    };
    Ok(Some(Layout {
        threads,
        frames,
        code,
        text,
    }))
}

/// Searches frames, and returns the offset of the first instruction in code as well.
fn search_frames(py: Python<'_>) -> PyResult<Option<(FrameLayout, u64)>> {
    let object = || -> PyResult<_> { py.eval(c"object()", None, None) };
    let (outer, inner) = (object()?, object()?);
    let locals = [inner.as_ptr() as u64, outer.as_ptr() as u64];
    let look = PyCFunction::new_closure(py, None, None, move |arguments, _| {
        if let Some((frames, instructions)) = look_at_frames(arguments.py(), locals) {
            FOUND.set(Some(frames));
            FIRST_INSTRUCTION.set(instructions);
        }
    })?;
    FOUND.set(None);
    py.eval(
        c"lambda outer, inner, look: (lambda inner, look: look())(inner, look)",
        None,
        None,
    )?
    .call1((outer, inner, look))?;
    Ok(FOUND
        .take()
        .map(|frames| (frames, FIRST_INSTRUCTION.take())))
}

/// Looks at the frames of the two functions above: the innermost and its caller.
fn look_at_frames(py: Python<'_>, locals: [u64; 2]) -> Option<(FrameLayout, u64)> {
    let known = known_frames(py)?;
    // SAFETY: the function has no preconditions.
    let state = unsafe { ffi::PyGILState_GetThisThreadState() } as u64;
    let states: [u64; STATE_WORDS] = read_words(state)?;
    let mut found = Vec::new();
    for (index, &word) in states.iter().enumerate().skip(1) {
        found.extend(frame_layouts(word, index, None, &known, locals));
        if let Some(links) = read_words::<LINK_WORDS>(word) {
            for (link, &word) in links.iter().enumerate() {
                found.extend(frame_layouts(word, index, Some(link), &known, locals));
            }
        }
    }
    only(found)
}

/// Returns the layouts under which `inner` is the address of the innermost frame.
fn frame_layouts(
    inner: u64,
    state: usize,
    link: Option<usize>,
    known: &[KnownFrame; 2],
    locals: [u64; 2],
) -> Option<(FrameLayout, u64)> {
    let words: [u64; FRAME_WORDS] = read_words(inner)?;
    let object = only(places(&words, known[0].object))?;
    let code = only(places(&words.map(|word| word & !MARKS), known[0].code))?;
    let callers = words.iter().enumerate().filter_map(|(previous, &address)| {
        let caller: [u64; FRAME_WORDS] = read_words(address)?;
        let is_caller = caller[object] == known[1].object && caller[code] & !MARKS == known[1].code;
        is_caller.then_some((previous, caller))
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
    let (instruction, first) = only(instructions.collect())?;
    let is_local =
        |&index: &usize| words[index] & !MARKS == locals[0] && caller[index] & !MARKS == locals[1];
    let local = only((0..FRAME_WORDS).filter(is_local).collect())?;
    let layout = FrameLayout {
        state,
        link,
        object,
        previous,
        code,
        instruction,
        local,
    };
    Some((layout, first))
}

fn search_code(py: Python<'_>, instructions: u64) -> PyResult<Option<CodeLayout>> {
    let function = py.eval(c"(lambda: lambda: 0)()", None, None)?;
    let changes = PyDict::new(py);
    changes.set_item("co_firstlineno", LINE)?;
    let code = function
        .getattr("__code__")?
        .call_method("replace", (), Some(&changes))?;
    let Some(words) = read_words::<CODE_WORDS>(code.as_ptr() as u64) else {
        return Ok(None);
    };
    let place = |attribute: &str| -> PyResult<Option<usize>> {
        let value = code.getattr(attribute)?;
        Ok(only(places(&words, value.as_ptr() as u64)))
    };
    let halves = words
        .iter()
        .flat_map(|word| [*word as u32, (word >> 32) as u32]);
    let lines = halves.enumerate().filter(|&(_, half)| half == LINE);
    let line = only(lines.map(|(index, _)| index).collect());
    let (Some(name), Some(file), Some(table), Some(line)) = (
        place("co_name")?,
        place("co_filename")?,
        place("co_linetable")?,
        line,
    ) else {
        return Ok(None);
    };
    Ok(Some(CodeLayout {
        kind: code.get_type().as_ptr() as u64,
        name,
        file,
        table,
        first_line: 4 * line as u64,
        instructions,
    }))
}

fn search_text(py: Python<'_>) -> Option<TextLayout> {
    let samples = TextLayout::SAMPLES.map(|text| PyString::new(py, text));
    let addresses = [0, 1, 2, 3].map(|index: usize| samples[index].as_ptr() as u64);
    TextLayout::find(addresses)
}

/// Searches the list of thread states: a new state comes to its head and goes again. The caller
/// holds the GIL.
fn search_threads() -> Option<ThreadLayout> {
    // SAFETY: the GIL is held, so there is an interpreter and this thread has a state. The new state
    // is never used by a thread, and it is cleared before it is deleted, with the GIL held.
    let (interpreter, own, added, words, with_added) = unsafe {
        let interpreter = ffi::PyInterpreterState_Get();
        let own = ffi::PyGILState_GetThisThreadState() as u64;
        let words = interpreter_words(interpreter as u64);
        let added = ffi::PyThreadState_New(interpreter);
        if added.is_null() {
            return None;
        }
        let with_added = interpreter_words(interpreter as u64);
        let state: Option<[u64; STATE_WORDS]> = read_words(added as u64);
        ffi::PyThreadState_Clear(added);
        ffi::PyThreadState_Delete(added);
        (
            interpreter as u64,
            own,
            (added as u64, state?),
            words,
            with_added,
        )
    };
    let (added, state) = added;
    let after = interpreter_words(interpreter);
    let heads = (0..words.len().min(with_added.len()).min(after.len()))
        .filter(|&index| with_added[index] == added && words[index] == after[index])
        .filter(|&index| state.contains(&words[index]) && words[index] != 0);
    let head = only(heads.collect())?;
    let next = only(places(&state, words[head]))?;
    let own: [u64; STATE_WORDS] = read_words(own)?;
    // SAFETY: the function has no preconditions.
    let number = unsafe { libc::gettid() };
    let native = only(places(&own, u64::try_from(number).ok()?))?;
    Some(ThreadLayout {
        head: interpreter + 8 * head as u64,
        next,
        native,
    })
}

/// Returns the words of the interpreter's state, as far as they can be read.
fn interpreter_words(address: u64) -> Vec<u64> {
    const BLOCK: usize = 64;
    let mut words = vec![0; INTERPRETER_WORDS];
    let blocks = words.chunks_mut(BLOCK).enumerate();
    let unread = blocks.into_iter().find_map(|(index, block)| {
        let begin = index * BLOCK;
        (!read_many(address + 8 * begin as u64, block)).then_some(begin)
    });
    words.truncate(unread.unwrap_or(INTERPRETER_WORDS));
    words
}

fn places(words: &[u64], value: u64) -> Vec<usize> {
    let equal = words.iter().enumerate().filter(|&(_, &word)| word == value);
    equal.map(|(index, _)| index).collect()
}

/// Returns the element of a list that has exactly one.
fn only<T>(list: Vec<T>) -> Option<T> {
    let mut elements = list.into_iter();
    let first = elements.next()?;
    elements.next().is_none().then_some(first)
}
