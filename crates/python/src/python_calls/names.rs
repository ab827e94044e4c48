//! Names of functions and of places in them, created once and found by address afterwards.
//!
//! Code objects are kept alive while calls are followed, so that an address stands for one
//! function. No other objects are kept alive.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mindprof_record::{Name, NameKind};
use pyo3::prelude::*;
use pyo3::types::PyString;
use rustc_hash::FxHashMap;

use super::detached::DetachedFrame;
use super::interned::CallNames;
use super::interpreter::{Frame, native_function, native_text};
use super::modules;
use crate::source_files;

/// The names of C functions that can replace or remove our hook.
const SWITCHES: [&str; 6] = [
    "setprofile",
    "_setprofileallthreads",
    "enable",
    "disable",
    "pause_calls",
    "resume_calls",
];

/// The code objects that are kept alive.
static KEPT: Mutex<Vec<Py<PyAny>>> = Mutex::new(Vec::new());

/// Releases all objects that were kept alive.
pub(super) fn release() {
    let kept = std::mem::take(&mut *lock(&KEPT));
    drop(kept);
    modules::release();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A Python function, as calls of it are recorded.
#[derive(Clone, Copy)]
pub(super) struct Function {
    /// `file.py(10): function`, with the line of its definition.
    pub(super) name: Name,
    /// Whether it is registered as a function that calls a module.
    pub(super) calls_module: bool,
    /// Whether it is registered as a function that optimizers call at each step.
    pub(super) is_step: bool,
    /// Whether it is a function of mindprof's own.
    pub(super) is_own: bool,
}

/// A C function, as calls of it are recorded.
#[derive(Clone, Copy)]
pub(super) struct Native {
    /// `<built-in method name of type object at 0x...>`.
    pub(super) name: Name,
    /// Whether it can replace or remove our hook.
    pub(super) is_switch: bool,
}

/// The names that one thread has encountered, by address.
#[derive(Default)]
pub(super) struct Names {
    functions: FxHashMap<usize, Function>,
    /// The file and the name of each function.
    texts: FxHashMap<usize, (String, String)>,
    places: FxHashMap<(usize, c_int), Name>,
    natives: FxHashMap<usize, Native>,
}

impl Names {
    /// Forgets all names, because the code objects may no longer be kept alive.
    pub(super) fn clear(&mut self) {
        self.functions.clear();
        self.texts.clear();
        self.places.clear();
        self.natives.clear();
    }

    /// Returns the function of a code object.
    #[inline]
    pub(super) fn function(&mut self, code: &Bound<'_, PyAny>) -> Function {
        match self.functions.get(&(code.as_ptr() as usize)) {
            Some(function) => *function,
            None => self.add_function(code),
        }
    }

    #[cold]
    fn add_function(&mut self, code: &Bound<'_, PyAny>) -> Function {
        let texts = texts_of(code);
        let function = Function {
            name: place_name(&texts, first_line(code)),
            calls_module: modules::are_called_by(code),
            is_step: modules::is_step(code),
            is_own: is_own(code),
        };
        lock(&KEPT).push(code.clone().unbind());
        self.functions.insert(code.as_ptr() as usize, function);
        self.texts.insert(code.as_ptr() as usize, texts);
        function
    }

    /// Returns the name of the place that a frame is at, without the GIL. Returns `None` if its
    /// function is unknown.
    #[inline]
    pub(super) fn detached_place(
        &mut self,
        instruction: c_int,
        frame: DetachedFrame,
    ) -> Option<Name> {
        let place = (frame.code(), instruction);
        if let Some(name) = self.places.get(&place) {
            return Some(*name);
        }
        let name = place_name(self.texts.get(&frame.code())?, frame.line());
        self.places.insert(place, name);
        Some(name)
    }

    /// Returns the name of the place that a frame of `code` is at: `file.py(12): function`.
    #[inline]
    pub(super) fn place(&mut self, code: usize, instruction: c_int, frame: Frame<'_>) -> Name {
        match self.places.get(&(code, instruction)) {
            Some(name) => *name,
            None => self.add_place(instruction, frame),
        }
    }

    #[cold]
    fn add_place(&mut self, instruction: c_int, frame: Frame<'_>) -> Name {
        let code = frame.code();
        // Adds the function, which keeps its code alive.
        self.function(&code);
        let name = place_name(&texts_of(&code), frame.line());
        self.places
            .insert((code.as_ptr() as usize, instruction), name);
        name
    }

    /// Returns a C function, or `None` if the object is not one.
    #[inline]
    pub(super) fn native(&mut self, function: &Bound<'_, PyAny>) -> Option<Native> {
        let (definition, name) = native_function(function)?;
        if let Some(native) = self.natives.get(&definition) {
            return Some(*native);
        }
        let text = native_text(function)?;
        let native = Native {
            name: Name::intern(&text, NameKind::Function),
            is_switch: SWITCHES
                .iter()
                .any(|switch| switch.as_bytes() == name.to_bytes()),
        };
        self.natives.insert(definition, native);
        Some(native)
    }
}

/// Returns whether a code object is of mindprof's own package.
fn is_own(code: &Bound<'_, PyAny>) -> bool {
    source_files::is_ours(&file_of(code))
}

/// Returns the name of a function as text: `file.py(10): function`.
pub(super) fn function_text(code: &Bound<'_, PyAny>) -> String {
    let (file, function) = texts_of(code);
    format!("{file}({}): {function}", first_line(code))
}

/// Returns the line of a function's definition, or zero if it is unknown.
fn first_line(code: &Bound<'_, PyAny>) -> c_int {
    let line = code.getattr(CallNames::get(code.py()).code_line.bind(code.py()));
    line.and_then(|line| line.extract()).unwrap_or(0)
}

fn place_name((file, function): &(String, String), line: c_int) -> Name {
    Name::intern(&format!("{file}({line}): {function}"), NameKind::Function)
}

/// Returns the shortened file name and the name of a function.
fn texts_of(code: &Bound<'_, PyAny>) -> (String, String) {
    let names = CallNames::get(code.py());
    let function = text_of(code, names.code_name.bind(code.py()));
    (source_files::shortened(&file_of(code)).to_owned(), function)
}

/// Returns the file of a function.
fn file_of(code: &Bound<'_, PyAny>) -> String {
    text_of(code, CallNames::get(code.py()).code_file.bind(code.py()))
}

fn text_of(code: &Bound<'_, PyAny>, attribute: &Bound<'_, PyString>) -> String {
    let value: Option<Bound<'_, PyAny>> = code.getattr(attribute).ok();
    // Not with `str`, which runs signal handlers: their exceptions would be lost here.
    let value = value.and_then(|value| {
        Some(
            value
                .cast::<PyString>()
                .ok()?
                .to_string_lossy()
                .into_owned(),
        )
    });
    value.unwrap_or_else(|| String::from("?"))
}
