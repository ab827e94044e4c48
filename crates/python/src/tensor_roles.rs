//! Reports the roles of tensors to the recorder: parameters, gradients and optimizer state.
//!
//! The roles become categories of the memory timeline.

#![expect(
    unsafe_code,
    reason = "torch's tensors are read through the address of their implementation"
)]

use std::sync::{Mutex, PoisonError};

use mindprof_model::TensorRole;
use mindprof_python_support::interned_names;
use mindprof_pytorch::Observer;
use mindprof_record::wants_storages;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::runtime;

interned_names! {
    /// Attributes in which modules, optimizers and torch's tensors hold tensors.
    struct TensorNames {
        _cdata,
        _parameters,
        grad,
        is_leaf,
        param_groups,
        params,
        state,
        values,
    }
}

/// Fills the cache of this module at import.
pub(crate) fn prefill(py: Python<'_>) {
    TensorNames::get(py);
}

/// torch's tensor classes, which live for the life of the process.
static TORCH_TENSORS: Mutex<Vec<Py<PyType>>> = Mutex::new(Vec::new());

/// Registers torch's tensor classes. Instances of their subclasses are not reported.
#[pyfunction]
pub(crate) fn name_torch_tensors(classes: Vec<Py<PyType>>) {
    *TORCH_TENSORS.lock().unwrap_or_else(PoisonError::into_inner) = classes;
}

/// Replaces the method that torch calls after each optimizer step: reports the optimizer's tensors
/// to the recorder and then calls the original method.
///
/// It is a native object rather than a Python function, so that it does not appear among the
/// recorded Python calls.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct OptimizerWatch {
    /// The original method.
    #[pyo3(get)]
    theirs: Py<PyAny>,
}

#[pymethods]
impl OptimizerWatch {
    #[new]
    const fn new(theirs: Py<PyAny>) -> Self {
        Self { theirs }
    }

    fn __call__<'py>(&self, optimizer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        note_optimizer(optimizer);
        self.theirs.bind(optimizer.py()).call1((optimizer,))
    }
}

/// Reports the parameters of a module and their gradients to the recorder, if a window wants them.
#[pyfunction]
pub(crate) fn note_module(module: &Bound<'_, PyAny>) {
    if wants_storages() {
        // Unknown kinds of modules are ignored: profiling must not make a program fail.
        let _ = note_parameters_of(module);
    }
}

/// Reports the parameters and the state of an optimizer to the recorder, if a window wants them.
#[pyfunction]
pub(crate) fn note_optimizer(optimizer: &Bound<'_, PyAny>) {
    if wants_storages() {
        // Unknown kinds of optimizers are ignored, for the same reason.
        let _ = note_groups_of(optimizer);
    }
}

fn note_parameters_of(module: &Bound<'_, PyAny>) -> PyResult<()> {
    let names = TensorNames::get(module.py());
    let parameters = module.getattr(&names._parameters)?;
    for parameter in parameters.call_method0(&names.values)?.try_iter()? {
        note_parameter(&parameter?);
    }
    Ok(())
}

fn note_groups_of(optimizer: &Bound<'_, PyAny>) -> PyResult<()> {
    let names = TensorNames::get(optimizer.py());
    for group in optimizer.getattr(&names.param_groups)?.try_iter()? {
        for parameter in group?.get_item(&names.params)?.try_iter()? {
            note_parameter(&parameter?);
        }
    }
    // The state is not looked up by parameter: hashing a tensor calls a Python function, which may
    // run a signal handler whose exception would be lost here.
    let state = optimizer.getattr(&names.state)?;
    for kept in state.cast::<PyDict>()?.values() {
        if let Ok(kept) = kept.cast::<PyDict>() {
            for value in kept.values() {
                note(&value, TensorRole::OptimizerState);
            }
        }
    }
    Ok(())
}

fn note_parameter(parameter: &Bound<'_, PyAny>) {
    note(parameter, TensorRole::Parameter);
    if !runtime::note_gradient(parameter) {
        let _ = note_torch_gradient(parameter);
    }
}

fn note(value: &Bound<'_, PyAny>, role: TensorRole) {
    if !runtime::note_role(value, role) {
        note_torch(value, role);
    }
}

/// Reports `value` if it is a tensor of torch.
fn note_torch(value: &Bound<'_, PyAny>, role: TensorRole) {
    let Some(observer) = Observer::present().filter(|_| is_torch_tensor(value)) else {
        return;
    };
    let names = TensorNames::get(value.py());
    if let Ok(implementation) = (value.getattr(&names._cdata)).and_then(|found| found.extract()) {
        // SAFETY: `is_torch_tensor` checked that the class of `value` is one of torch's, so
        // `_cdata` is the address of the implementation that it owns, and `value` is alive for the
        // call.
        unsafe { observer.tensor_role(role, implementation) };
    }
}

fn note_torch_gradient(parameter: &Bound<'_, PyAny>) -> PyResult<()> {
    let names = TensorNames::get(parameter.py());
    // torch warns if `grad` is read from a tensor that is not a leaf.
    if is_torch_tensor(parameter) && parameter.getattr(&names.is_leaf)?.is_truthy()? {
        note_torch(&parameter.getattr(&names.grad)?, TensorRole::Gradient);
    }
    Ok(())
}

/// Returns whether the class of `value` is one of torch's tensor classes.
pub(crate) fn is_torch_tensor(value: &Bound<'_, PyAny>) -> bool {
    let classes = TORCH_TENSORS.lock().unwrap_or_else(PoisonError::into_inner);
    classes.iter().any(|class| value.get_type().is(class))
}
