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
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::pending_exception::ignore_errors;
use crate::runtime;
use crate::torch_names::attribute_of;

interned_names! {
    /// Attributes in which modules, optimizers and torch's tensors hold tensors, and the method of a
    /// descriptor.
    struct TensorNames {
        __get__,
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

/// torch's tensor classes and the way to a tensor's address, known once torch was probed. They live
/// for the life of the process.
static TORCH_TENSORS: Mutex<Option<TorchTensors>> = Mutex::new(None);

struct TorchTensors {
    classes: Vec<Py<PyType>>,
    /// The descriptor of `_cdata` in torch's base class. A subclass may define another `_cdata`, and
    /// a program may replace that of a Python class, but not this one.
    address: Py<PyAny>,
}

/// Registers torch's tensor classes, which derive from `base`. Instances of other subclasses are not
/// reported.
///
/// Raises `TypeError` if `base` is not a class of C code that defines `_cdata` itself.
#[pyfunction]
pub(crate) fn name_torch_tensors(
    base: &Bound<'_, PyType>,
    classes: Vec<Bound<'_, PyType>>,
) -> PyResult<()> {
    let address = address_descriptor(base)?;
    for class in &classes {
        if !class.is_subclass(base)? {
            return Err(PyTypeError::new_err("a tensor class has another base"));
        }
    }
    let found = TorchTensors {
        classes: classes.into_iter().map(Bound::unbind).collect(),
        address: address.unbind(),
    };
    *TORCH_TENSORS.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    Ok(())
}

/// Returns the address of the implementation of a tensor whose class derives from `base`, whatever
/// its class and the program made of `_cdata`.
///
/// Raises `TypeError` if `base` is not a class of C code that defines `_cdata` itself.
#[pyfunction]
pub(crate) fn torch_tensor_address(
    base: &Bound<'_, PyType>,
    tensor: &Bound<'_, PyAny>,
) -> PyResult<u64> {
    read_address(&address_descriptor(base)?, tensor)
}

/// Returns the descriptor of `_cdata` that a class of C code defines.
fn address_descriptor<'py>(base: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    let of_python = || PyTypeError::new_err("torch's tensors do not report their address");
    // SAFETY: `base` is a live class.
    let flags = unsafe { ffi::PyType_GetFlags(base.as_type_ptr()) };
    let own = base.getattr("__dict__")?.get_item("_cdata")?;
    let is_descriptor = own.get_type().as_type_ptr() == &raw mut ffi::PyGetSetDescr_Type;
    // Python code can neither change a class that is not on the heap nor make such a descriptor.
    if flags & ffi::Py_TPFLAGS_HEAPTYPE != 0
        || !is_descriptor
        || !own.getattr("__objclass__")?.is(base)
    {
        return Err(of_python());
    }
    Ok(own)
}

/// Calls the C function of the descriptor, which refuses objects of other classes.
fn read_address(descriptor: &Bound<'_, PyAny>, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    let names = TensorNames::get(tensor.py());
    descriptor
        .call_method1(&names.__get__, (tensor, tensor.get_type()))?
        .extract()
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

    /// Returns the original method's attribute of this name. torch's own profiler reads `__code__`
    /// to recognize the steps of optimizers.
    fn __getattr__<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        attribute_of(self.theirs.bind(name.py()), name)
    }
}

/// Reports the parameters of a module and their gradients to the recorder, if a window wants them.
#[pyfunction]
pub(crate) fn note_module(module: &Bound<'_, PyAny>) {
    if wants_storages() {
        // Unknown kinds of modules are ignored: profiling must not make a program fail.
        ignore_errors(module.py(), note_parameters_of(module));
    }
}

/// Reports the parameters and the state of an optimizer to the recorder, if a window wants them.
#[pyfunction]
pub(crate) fn note_optimizer(optimizer: &Bound<'_, PyAny>) {
    if wants_storages() {
        // Unknown kinds of optimizers are ignored, for the same reason.
        ignore_errors(optimizer.py(), note_groups_of(optimizer));
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
        ignore_errors(parameter.py(), note_torch_gradient(parameter));
    }
}

fn note(value: &Bound<'_, PyAny>, role: TensorRole) {
    if !runtime::note_role(value, role) {
        note_torch(value, role);
    }
}

/// Reports `value` if it is a tensor of torch.
fn note_torch(value: &Bound<'_, PyAny>, role: TensorRole) {
    let Some((observer, address)) = Observer::present().zip(address_of_torch(value)) else {
        return;
    };
    // SAFETY: torch's own function returned the address of the implementation that `value` owns, and
    // `value` is alive for the call.
    unsafe { observer.tensor_role(role, address) };
}

/// Returns the address of the implementation that `value` owns, if its class is one of torch's.
pub(crate) fn address_of_torch(value: &Bound<'_, PyAny>) -> Option<u64> {
    if !is_torch_tensor(value) {
        return None;
    }
    let descriptor = {
        let found = TORCH_TENSORS.lock().unwrap_or_else(PoisonError::into_inner);
        found.as_ref()?.address.clone_ref(value.py())
    };
    ignore_errors(value.py(), read_address(descriptor.bind(value.py()), value))
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
fn is_torch_tensor(value: &Bound<'_, PyAny>) -> bool {
    let found = TORCH_TENSORS.lock().unwrap_or_else(PoisonError::into_inner);
    let classes = found.as_ref().map_or(&[][..], |found| &found.classes);
    classes.iter().any(|class| value.get_type().is(class))
}
