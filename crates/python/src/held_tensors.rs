//! The modules and optimizers that a recording has seen, with the tensors that they held.
//!
//! The profile hook notes a module at its first call and an optimizer at its first step. A session
//! takes a copy when it stops, for the event tree. No object is kept alive.

#![expect(
    unsafe_code,
    reason = "torch's tensors are read through the address of their implementation"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mindprof_python_support::interned_names;
use mindprof_pytorch::{HeldTensor, Observer};
use mindprof_record::{TimeAxis, ticks, wants_held_tensors};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyWeakrefMethods, PyWeakrefReference};
use rustc_hash::FxHashMap;

use crate::pending_exception::ignore_errors;
use crate::tensor_roles::address_of_torch;

interned_names! {
    /// Attributes in which modules, optimizers and torch's tensors hold tensors.
    struct HolderNames {
        _parameters,
        grad,
        is_leaf,
        param_groups,
        params,
        state,
    }
}

/// Fills the cache of this module at import.
pub(crate) fn prefill(py: Python<'_>) {
    HolderNames::get(py);
}

static SEEN: Mutex<Option<Seen>> = Mutex::new(None);

/// A module, by the name of its calls.
#[derive(Clone, Debug)]
pub(crate) struct SeenModule {
    pub(crate) address: usize,
    pub(crate) class: usize,
    pub(crate) class_name: String,
    /// `None` if the recording did not ask for memory.
    pub(crate) parameters: Option<Vec<SeenParameter>>,
}

/// A parameter with its gradient.
#[derive(Clone, Debug)]
pub(crate) struct SeenParameter {
    /// Its name in the module; empty in an optimizer.
    pub(crate) name: String,
    pub(crate) tensor: HeldTensor,
    pub(crate) gradient: Option<HeldTensor>,
    /// The state that an optimizer keeps for it.
    pub(crate) state: Vec<(String, HeldTensor)>,
}

/// An optimizer.
#[derive(Clone, Debug)]
pub(crate) struct SeenOptimizer {
    pub(crate) address: usize,
    pub(crate) parameters: Vec<SeenParameter>,
}

/// The modules and optimizers of a recording, as a profile holds them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    pub(crate) modules: FxHashMap<String, Arc<SeenModule>>,
    pub(crate) optimizers: Vec<Arc<SeenOptimizer>>,
    /// The function that calls modules, as `file.py(10): function`.
    pub(crate) module_call: Option<String>,
    /// The times of optimizer steps since the Unix epoch, and the numbers of the optimizers.
    pub(crate) steps: Vec<(u64, usize)>,
}

#[derive(Default)]
struct Seen {
    holders: Holders,
    /// The optimizers by address, with weak references that tell whether they are still the same.
    by_address: FxHashMap<usize, (Option<Py<PyWeakrefReference>>, usize)>,
    /// As in [`Holders`], but in ticks.
    steps: Vec<(u64, usize)>,
}

/// Notes a module at its first call. `name` is that of its calls, `function` calls it.
pub(crate) fn see_module(
    module: &Bound<'_, PyAny>,
    class_name: &str,
    name: &str,
    function: String,
) {
    let parameters = wants_held_tensors().then(|| {
        // Unknown kinds of modules have no parameters here: profiling must not make a program fail.
        ignore_errors(module.py(), parameters_of(module)).unwrap_or_default()
    });
    let seen = Arc::new(SeenModule {
        address: module.as_ptr() as usize,
        class: module.get_type().as_ptr() as usize,
        class_name: class_name.to_owned(),
        parameters,
    });
    let mut known = lock(&SEEN);
    let holders = &mut known.get_or_insert_default().holders;
    holders.modules.insert(name.to_owned(), seen);
    holders.module_call.get_or_insert(function);
}

/// Notes a step of an optimizer, and its tensors if it is the first one.
pub(crate) fn see_step(optimizer: &Bound<'_, PyAny>) {
    if !wants_held_tensors() {
        return;
    }
    let number = match find_optimizer(optimizer) {
        Some(number) => number,
        None => add_optimizer(optimizer),
    };
    let mut known = lock(&SEEN);
    (known.get_or_insert_default().steps).push((ticks(), number));
}

/// Returns everything seen since calls are followed.
pub(crate) fn seen(axis: TimeAxis) -> Holders {
    let known = lock(&SEEN);
    let Some(known) = known.as_ref() else {
        return Holders::default();
    };
    let time = |moment| axis.reference_unix_ns() + axis.at_ticks(moment).0;
    let steps = known
        .steps
        .iter()
        .map(|&(moment, number)| (time(moment), number));
    Holders {
        steps: steps.collect(),
        ..known.holders.clone()
    }
}

/// Forgets everything, when calls are no longer followed.
pub(crate) fn release() {
    let known = lock(&SEEN).take();
    drop(known);
}

fn find_optimizer(optimizer: &Bound<'_, PyAny>) -> Option<usize> {
    let known = lock(&SEEN);
    let address = optimizer.as_ptr() as usize;
    let (weak, number) = known.as_ref()?.by_address.get(&address)?;
    let is_same = match weak {
        Some(weak) => {
            let known = weak.bind(optimizer.py()).upgrade();
            known.is_some_and(|known| known.is(optimizer))
        }
        None => true,
    };
    is_same.then_some(*number)
}

fn add_optimizer(optimizer: &Bound<'_, PyAny>) -> usize {
    // Done before the lock is taken: creating objects can run finalizers, and those any code.
    let weak = ignore_errors(optimizer.py(), PyWeakrefReference::new(optimizer)).map(Bound::unbind);
    let address = optimizer.as_ptr() as usize;
    let seen = Arc::new(SeenOptimizer {
        address,
        parameters: ignore_errors(optimizer.py(), groups_of(optimizer)).unwrap_or_default(),
    });
    let mut known = lock(&SEEN);
    let known = known.get_or_insert_default();
    let number = known.holders.optimizers.len();
    known.holders.optimizers.push(seen);
    known.by_address.insert(address, (weak, number));
    number
}

fn parameters_of(module: &Bound<'_, PyAny>) -> PyResult<Vec<SeenParameter>> {
    let parameters = module.getattr(&HolderNames::get(module.py())._parameters)?;
    let mut found = Vec::new();
    for (name, value) in parameters.cast::<PyDict>()?.iter() {
        if let (Ok(name), Some(tensor)) = (name.cast::<PyString>(), read(&value)) {
            found.push(SeenParameter {
                name: name.to_string_lossy().into_owned(),
                tensor,
                gradient: gradient(&value),
                state: Vec::new(),
            });
        }
    }
    Ok(found)
}

fn groups_of(optimizer: &Bound<'_, PyAny>) -> PyResult<Vec<SeenParameter>> {
    let names = HolderNames::get(optimizer.py());
    let state = states_of(&optimizer.getattr(&names.state)?)?;
    let mut found = Vec::new();
    for group in optimizer.getattr(&names.param_groups)?.try_iter()? {
        for parameter in group?.get_item(&names.params)?.try_iter()? {
            let parameter = parameter?;
            if let Some(tensor) = read(&parameter) {
                found.push(SeenParameter {
                    name: String::new(),
                    tensor,
                    gradient: gradient(&parameter),
                    state: state
                        .get(&(parameter.as_ptr() as usize))
                        .cloned()
                        .unwrap_or_default(),
                });
            }
        }
    }
    Ok(found)
}

/// Returns the tensors of an optimizer's state by the address of the parameter. The state is not
/// looked up by parameter: hashing a tensor calls a Python function, which may run a signal handler
/// whose exception would be lost here.
fn states_of(state: &Bound<'_, PyAny>) -> PyResult<FxHashMap<usize, Vec<(String, HeldTensor)>>> {
    let mut found = FxHashMap::default();
    for (parameter, kept) in state.cast::<PyDict>()?.iter() {
        let Ok(kept) = kept.cast::<PyDict>() else {
            continue;
        };
        let tensors = kept.iter().filter_map(|(name, value)| {
            let name = name.cast::<PyString>().ok()?.to_string_lossy().into_owned();
            Some((name, read(&value)?))
        });
        found.insert(parameter.as_ptr() as usize, tensors.collect());
    }
    Ok(found)
}

fn gradient(parameter: &Bound<'_, PyAny>) -> Option<HeldTensor> {
    let names = HolderNames::get(parameter.py());
    // torch warns if `grad` is read from a tensor that is not a leaf.
    let py = parameter.py();
    let is_leaf = parameter
        .getattr(&names.is_leaf)
        .and_then(|it| it.is_truthy());
    if !ignore_errors(py, is_leaf)? {
        return None;
    }
    read(&ignore_errors(py, parameter.getattr(&names.grad))?)
}

/// Reads a tensor of torch's own classes.
fn read(value: &Bound<'_, PyAny>) -> Option<HeldTensor> {
    let (observer, address) = Observer::present().zip(address_of_torch(value))?;
    // SAFETY: torch's own descriptor returned the address of the implementation that `value` owns,
    // and `value` is alive for the call.
    unsafe { observer.read_tensor(address) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
