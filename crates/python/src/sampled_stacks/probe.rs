//! Finds where the running interpreter keeps threads, frames, code and texts.
//!
//! None of this is documented, and it differs between versions. Each position is searched for by
//! values that are known: a code object with known attributes, a thread state that comes and goes;
//! frames are found by `python_calls::frame_layout`. A position counts only if it is the only one
//! that fits. If one is missing, there is no layout.

#![expect(
    unsafe_code,
    reason = "creates a thread state to find the list of states"
)]

use std::sync::OnceLock;

use mindprof_frames::{CodeLayout, Layout, TextLayout, ThreadLayout, read_many, read_words};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::python_calls::frame_layout::{self, only, places};

/// The numbers of words of each structure that are searched.
const STATE_WORDS: usize = 48;
const CODE_WORDS: usize = 28;
const INTERPRETER_WORDS: usize = 4096;

/// A line that no other field of a code object equals.
const LINE: u32 = 123_456_789;

static LAYOUT: OnceLock<Option<Layout>> = OnceLock::new();

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
    frame_layout::find(py)?;
    let Some(found) = frame_layout::known() else {
        return Ok(None);
    };
    let (Some(code), Some(text), Some(threads)) = (
        search_code(py, found.instructions)?,
        search_text(py),
        search_threads(),
    ) else {
        return Ok(None);
    };
    Ok(Some(Layout {
        threads,
        frames: found.frames,
        code,
        text,
    }))
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
