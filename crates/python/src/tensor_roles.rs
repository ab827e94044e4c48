//! What modules and optimizers say of their tensors: parameters, gradients, and what an optimizer
//! keeps from one step to the next. It goes to the recorder, as roles.

#![expect(
    unsafe_code,
    reason = "torch's tensors are asked by the address of their implementation"
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

/// Fills the cell of this module at import.
pub(crate) fn prefill(py: Python<'_>) {
    TensorNames::get(py);
}

/// torch's classes of tensors. They live as long as the process.
static TORCH_TENSORS: Mutex<Vec<Py<PyType>>> = Mutex::new(Vec::new());

/// Says which classes are of torch's tensors; of what is derived from them, nothing is told.
#[pyfunction]
pub(crate) fn name_torch_tensors(classes: Vec<Py<PyType>>) {
    *TORCH_TENSORS.lock().unwrap_or_else(PoisonError::into_inner) = classes;
}

/// Stands in the place of the method that torch calls after each step of an optimizer, to tell the
/// recorder of the optimizer's tensors; calls that method too.
///
/// It is no function of Python, so that no call of ours is among those that are followed.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct OptimizerWatch {
    /// What stood there.
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

/// Tells the recorder which tensors are parameters of a module and their gradients, if some window
/// wants to know.
#[pyfunction]
pub(crate) fn note_module(module: &Bound<'_, PyAny>) {
    if wants_storages() {
        // A module of another make is left alone: profiling must not be what makes a program fail.
        let _ = note_parameters_of(module);
    }
}

/// Tells the recorder which tensors an optimizer updates and keeps, if some window wants to know.
#[pyfunction]
pub(crate) fn note_optimizer(optimizer: &Bound<'_, PyAny>) {
    if wants_storages() {
        // As with modules.
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
    // Not looked up by parameter: a tensor's hash is a function of Python, in which a signal may be
    // answered, whose exception would be lost here.
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

/// Notes a tensor of torch's, if it is one.
fn note_torch(value: &Bound<'_, PyAny>, role: TensorRole) {
    let Some(observer) = Observer::present().filter(|_| is_torch_tensor(value)) else {
        return;
    };
    let names = TensorNames::get(value.py());
    if let Ok(implementation) = (value.getattr(&names._cdata)).and_then(|found| found.extract()) {
        // SAFETY: an object of exactly these classes tells the address of its implementation, which
        // it owns, and `value` is held meanwhile.
        unsafe { observer.tensor_role(role, implementation) };
    }
}

fn note_torch_gradient(parameter: &Bound<'_, PyAny>) -> PyResult<()> {
    let names = TensorNames::get(parameter.py());
    // Asked of what is no leaf, torch would warn.
    if is_torch_tensor(parameter) && parameter.getattr(&names.is_leaf)?.is_truthy()? {
        note_torch(&parameter.getattr(&names.grad)?, TensorRole::Gradient);
    }
    Ok(())
}

fn is_torch_tensor(value: &Bound<'_, PyAny>) -> bool {
    let classes = TORCH_TENSORS.lock().unwrap_or_else(PoisonError::into_inner);
    classes.iter().any(|class| value.get_type().is(class))
}
