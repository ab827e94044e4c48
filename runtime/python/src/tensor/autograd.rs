//! Autograd for Python: tracking, `backward` and hooks.

use std::cell::RefCell;

use mindtorch_tensor as host;
use mindtorch_tensor::{Hook, RetainGraph, Unused};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::tensors;
use super::{Tensor, wrap, written};
use crate::error::Error;
use mindprof_python_support::enter::{enter, leave};
use mindprof_python_support::stack_notes::note_stack_around;

thread_local! {
    /// The exception that a Python callback raised during a backward pass. The engine only knows
    /// that one was raised.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Stores an exception until the engine returns, and returns the error that represents it.
pub(super) fn keep_raised(error: PyErr) -> host::Error {
    RAISED.with(|raised| *raised.borrow_mut() = Some(error));
    host::Error::Callback
}

/// Runs the engine without the GIL, and re-raises the exception of a Python callback.
fn walk<T: Send>(py: Python<'_>, call: impl FnOnce() -> host::Result<T> + Send) -> PyResult<T> {
    let result = note_stack_around(|| enter(py, || call().map_err(Error::from)));
    match RAISED.with(|raised| raised.borrow_mut().take()) {
        Some(raised) if result.is_err() => Err(raised),
        _ => result,
    }
}

#[pymethods]
impl Tensor {
    /// Whether the tensor requires gradients.
    #[getter]
    fn get_requires_grad(&self) -> bool {
        self.0.requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, requires_grad: bool) -> PyResult<()> {
        Ok(self
            .0
            .set_requires_grad(requires_grad)
            .map_err(Error::from)?)
    }

    /// Sets whether the tensor requires gradients, in place.
    #[pyo3(signature = (requires_grad = true))]
    fn requires_grad_(slf: Bound<'_, Self>, requires_grad: bool) -> PyResult<Bound<'_, Self>> {
        written(slf, |tensor| tensor.set_requires_grad(requires_grad))
    }

    /// The accumulated gradient.
    #[getter]
    fn get_grad(&self) -> Option<Self> {
        self.0.grad().map(Self)
    }

    #[setter]
    fn set_grad(&self, grad: Option<&Self>) -> PyResult<()> {
        let grad = grad.map(|grad| grad.0.clone());
        Ok(self.0.set_grad(grad).map_err(Error::from)?)
    }

    /// Whether the tensor is a leaf: not the result of a tracked operator.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.0.is_leaf()
    }

    /// The autograd node that produced the tensor.
    #[getter]
    fn grad_fn(&self) -> Option<GradientNode> {
        self.0.node_name().map(|name| GradientNode { name })
    }

    /// How often the elements were modified.
    #[getter]
    fn _version(&self) -> u32 {
        self.0.version()
    }

    /// Whether the tensor keeps its gradient although it is not a leaf.
    #[getter]
    fn retains_grad(&self) -> bool {
        self.0.retains_grad()
    }

    /// The elements, detached from the graph; writing to them does not increment the version.
    #[getter]
    fn get_data(&self) -> Self {
        Self(self.0.data())
    }

    #[setter]
    fn set_data(&self, data: &Self) -> PyResult<()> {
        Ok(self.0.data().copy_(&data.0).map_err(Error::from)?)
    }

    /// Copies the elements and the gradient, for `copy.deepcopy`.
    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        memo: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let identity = slf.as_ptr().addr();
        if let Some(known) = memo.get_item(identity)? {
            return Ok(known);
        }
        let own = &slf.get().0;
        if !own.is_leaf() {
            return Err(PyRuntimeError::new_err(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the \
                 moment.  If you were attempting to deepcopy a module, this may be because of a \
                 torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001",
            ));
        }
        let copy = own.detached().duplicate().map_err(Error::from)?;
        if own.requires_grad() {
            copy.set_requires_grad(true).map_err(Error::from)?;
        }
        if let Some(gradient) = own.grad() {
            let gradient = gradient.detached().duplicate().map_err(Error::from)?;
            copy.set_grad(Some(gradient)).map_err(Error::from)?;
        }
        let copy = Bound::new(slf.py(), Self(copy))?.into_any();
        memo.set_item(identity, &copy)?;
        Ok(copy)
    }

    /// Makes the tensor keep its gradient although it is not a leaf.
    fn retain_grad(&self) -> PyResult<()> {
        Ok(self.0.retain_grad().map_err(Error::from)?)
    }

    /// Returns a view that is detached from the graph.
    fn detach(&self) -> PyResult<Self> {
        wrap(self.0.detach())
    }

    /// Detaches the tensor from its graph, in place.
    fn detach_(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        written(slf, host::Tensor::detach_)
    }

    /// Registers a function that is called with the gradient and may return a replacement.
    fn register_hook(&self, hook: Bound<'_, PyAny>) -> PyResult<HookHandle> {
        let name = hook.getattr("__name__").and_then(|name| name.extract());
        let name: String = name.unwrap_or_else(|_| "<unknown>".to_owned());
        let hook = hook.unbind();
        let hook = Hook::new(&name, move |gradient| {
            leave(|py| {
                let returned = hook.call1(py, (Tensor(gradient.clone()),));
                let returned = returned.map_err(keep_raised)?;
                if returned.is_none(py) {
                    return Ok(None);
                }
                let returned = returned.bind(py);
                let tensor = returned.cast::<Tensor>().map_err(|_| {
                    let found = returned.get_type();
                    let found = found
                        .name()
                        .map_or_else(|_| "?".to_owned(), |name| name.to_string());
                    keep_raised(PyTypeError::new_err(format!(
                        "expected Variable, but hook returned '{found}'"
                    )))
                })?;
                Ok(Some(tensor.get().0.clone()))
            })
        });
        let remove = self.0.register_hook(hook).map_err(Error::from)?;
        Ok(HookHandle {
            remove: Box::new(remove),
        })
    }

    /// Accumulates the gradients of all leaves that this tensor depends on.
    #[pyo3(signature = (gradient = None, retain_graph = None, create_graph = false, inputs = None))]
    fn backward(
        &self,
        gradient: Option<&Self>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<()> {
        refuse_graph(create_graph)?;
        if let Some(inputs) = inputs {
            let inputs = tensors(inputs)?;
            return backward_into(
                py,
                std::slice::from_ref(&self.0),
                gradient,
                retain(retain_graph),
                &inputs,
            );
        }
        let gradient = gradient.map(|gradient| gradient.0.clone());
        let retain = retain(retain_graph);
        walk(py, || {
            host::backward(std::slice::from_ref(&self.0), &[gradient], retain)
        })
    }
}

fn backward_into(
    py: Python<'_>,
    results: &[host::Tensor],
    gradient: Option<&Tensor>,
    retain: RetainGraph,
    inputs: &[host::Tensor],
) -> PyResult<()> {
    let gradients = [gradient.map(|gradient| gradient.0.clone())];
    walk(py, || {
        let found = host::gradients(results, inputs, &gradients, retain, Unused::Allow)?;
        for (input, gradient) in inputs.iter().zip(found) {
            match (input.grad(), gradient) {
                (_, None) => {}
                (None, Some(gradient)) => input.set_grad(Some(gradient.detach()?))?,
                (Some(known), Some(gradient)) => known.add_(&gradient)?,
            }
        }
        Ok(())
    })
}

fn retain(retain_graph: Option<bool>) -> RetainGraph {
    if retain_graph == Some(true) {
        RetainGraph::Yes
    } else {
        RetainGraph::No
    }
}

fn refuse_graph(create_graph: bool) -> PyResult<()> {
    if create_graph {
        return Err(PyRuntimeError::new_err(
            "create_graph=True is not supported: this runtime has first derivatives only. Write the second \
             derivative as a torch.autograd.Function, or profile PyTorch instead (see docs/runtime.md)",
        ));
    }
    Ok(())
}

/// Accumulates the gradients of all leaves that the tensors depend on.
#[pyfunction]
#[pyo3(signature = (tensors, grad_tensors, retain_graph, create_graph))]
pub(crate) fn backward(
    tensors: &Bound<'_, PyAny>,
    grad_tensors: Vec<Option<PyRef<'_, Tensor>>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    py: Python<'_>,
) -> PyResult<()> {
    refuse_graph(create_graph)?;
    let results = self::tensors(tensors)?;
    let gradients = handles(&grad_tensors);
    let retain = retain(retain_graph);
    walk(py, || host::backward(&results, &gradients, retain))
}

/// Returns the gradients of tensors with respect to others.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused))]
pub(crate) fn grad(
    outputs: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    grad_outputs: Vec<Option<PyRef<'_, Tensor>>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: bool,
    py: Python<'_>,
) -> PyResult<Vec<Option<Tensor>>> {
    refuse_graph(create_graph)?;
    let (results, inputs) = (tensors(outputs)?, tensors(inputs)?);
    let gradients = handles(&grad_outputs);
    let retain = retain(retain_graph);
    let unused = if allow_unused {
        Unused::Allow
    } else {
        Unused::Refuse
    };
    let found = walk(py, || {
        host::gradients(&results, &inputs, &gradients, retain, unused)
    })?;
    Ok(found
        .into_iter()
        .map(|gradient| gradient.map(Tensor))
        .collect())
}

fn handles(tensors: &[Option<PyRef<'_, Tensor>>]) -> Vec<Option<host::Tensor>> {
    tensors
        .iter()
        .map(|tensor| tensor.as_ref().map(|tensor| tensor.0.clone()))
        .collect()
}

/// Returns whether tracking is enabled on this thread.
#[pyfunction]
pub(crate) fn is_grad_enabled() -> bool {
    host::is_grad_enabled()
}

/// Enables or disables tracking on this thread and returns the previous setting.
#[pyfunction]
#[pyo3(name = "_set_grad_enabled")]
pub(crate) fn set_grad_enabled(mode: bool) -> bool {
    host::set_grad_enabled(mode)
}

/// A handle that removes a gradient hook. `register_hook` returns it.
#[pyclass(frozen, name = "RemovableHandle", module = "mindtorch_v2")]
pub(crate) struct HookHandle {
    remove: Box<dyn Fn() + Send + Sync>,
}

#[pymethods]
impl HookHandle {
    /// Removes the hook.
    fn remove(&self) {
        (self.remove)();
    }
}

/// The autograd node that produced a tensor, as exposed by `grad_fn`.
#[pyclass(frozen, name = "Node", module = "mindtorch_v2.autograd")]
pub(crate) struct GradientNode {
    name: String,
}

#[pymethods]
impl GradientNode {
    /// Returns the name of the node.
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        format!(
            "<{} object at {:#x}>",
            slf.get().name,
            slf.as_ptr() as usize
        )
    }
}
