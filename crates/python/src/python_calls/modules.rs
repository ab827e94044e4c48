//! Names of neural-network modules, and the functions that call them.
//!
//! A module is named `nn.Module: Linear_0`, numbered by class in the order of first calls. It is
//! identified by a weak reference, because another module may get its address after it dies. Its
//! parameters are reported to the recorder at its first call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mindprof_record::{Name, NameKind};
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use rustc_hash::FxHashMap;

use super::interpreter::Frame;
use super::names::function_text;
use crate::held_tensors::{self, see_module, see_step};
use crate::tensor_roles::note_module;

/// The code objects of functions that call modules. Their classes live for the life of the process.
static CALLERS: Mutex<Vec<Py<PyAny>>> = Mutex::new(Vec::new());

/// The code objects of functions that optimizers call at each step.
static STEPS: Mutex<Vec<Py<PyAny>>> = Mutex::new(Vec::new());

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// The modules that were called.
#[derive(Default)]
struct Known {
    by_address: FxHashMap<usize, (Option<Py<PyWeakrefReference>>, Name)>,
    counts: FxHashMap<String, u64>,
}

/// Registers `code` as the code of a function that calls the module it receives as `self`.
pub(super) fn add_caller(code: Bound<'_, PyAny>) {
    lock(&CALLERS).push(code.unbind());
}

/// Returns whether `code` is the code of a registered function.
pub(super) fn are_called_by(code: &Bound<'_, PyAny>) -> bool {
    lock(&CALLERS).iter().any(|caller| caller.is(code))
}

/// Registers `code` as the code of a function that an optimizer calls on itself at each step.
pub(super) fn add_step(code: Bound<'_, PyAny>) {
    lock(&STEPS).push(code.unbind());
}

/// Returns whether `code` is the code of a function registered by [`add_step`].
pub(super) fn is_step(code: &Bound<'_, PyAny>) -> bool {
    lock(&STEPS).iter().any(|step| step.is(code))
}

/// Notes the optimizer that a frame of such a function belongs to.
pub(super) fn note_step(frame: Frame<'_>) {
    if let Some(optimizer) = frame.argument(c"self") {
        see_step(&optimizer);
    }
}

/// Forgets all modules, so that the next recording starts numbering at zero.
pub(super) fn release() {
    let known = lock(&KNOWN).take();
    drop(known);
    held_tensors::release();
}

/// Returns the name of the module that a frame calls.
pub(super) fn name(frame: Frame<'_>) -> Option<Name> {
    let module = frame.argument(c"self")?;
    let address = module.as_ptr() as usize;
    if let Some(name) = find(&module, address) {
        return Some(name);
    }
    // Done before the lock is taken: creating an object can run finalizers, and those any code.
    note_module(&module);
    // Not by `str`, which runs signal handlers: their exceptions would be lost here.
    let class = module
        .get_type()
        .name()
        .ok()?
        .to_string_lossy()
        .into_owned();
    let weak = PyWeakrefReference::new(&module).ok().map(Bound::unbind);
    let (text, name) = add(&class, address, weak);
    see_module(&module, &class, &text, function_text(&frame.code()));
    Some(name)
}

/// Returns the text and the number of a new name for a module of a class.
fn add(class: &str, address: usize, weak: Option<Py<PyWeakrefReference>>) -> (String, Name) {
    let mut known = lock(&KNOWN);
    let known = known.get_or_insert_default();
    let count = known.counts.entry(class.to_owned()).or_default();
    let text = format!("nn.Module: {class}_{count}");
    let name = Name::intern(&text, NameKind::Module);
    *count += 1;
    known.by_address.insert(address, (weak, name));
    (text, name)
}

fn find(module: &Bound<'_, PyAny>, address: usize) -> Option<Name> {
    let known = lock(&KNOWN);
    let (weak, name) = known.as_ref()?.by_address.get(&address)?;
    let is_same = match weak {
        Some(weak) => weak
            .bind(module.py())
            .upgrade()
            .is_some_and(|known| known.is(module)),
        // The class does not support weak references: only the address is known.
        None => true,
    };
    is_same.then_some(*name)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
