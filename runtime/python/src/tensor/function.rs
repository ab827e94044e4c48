//! Support for `autograd.Function`: connects the user's forward and backward methods to the engine.

use mindtorch_tensor as host;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString, PyTuple};

use super::Tensor;
use super::autograd::keep_raised;
use mindprof_python_support::arguments::Arguments;
use mindprof_python_support::enter::leave;
use mindprof_record::{Name, NameKind, OpenScope, is_recording, open_with};

/// A call of a custom function whose autograd node does not exist yet.
///
/// Python creates it from the arguments and passes it to `finish_function`, which runs the forward
/// method.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct FunctionNode {
    operands: Vec<host::Tensor>,
    places: Vec<Option<usize>>,
    /// The encoded arguments, empty if nothing is recording.
    inputs: Arguments,
}

#[pymethods]
impl FunctionNode {
    #[new]
    fn new(arguments: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let mut operands = Vec::new();
        let places = arguments
            .iter()
            .map(|argument| {
                let tensor = argument.cast::<Tensor>().ok()?;
                operands.push(tensor.get().0.clone());
                Some(operands.len() - 1)
            })
            .collect();
        Ok(Self {
            operands,
            places,
            inputs: recorded_inputs(arguments)?,
        })
    }

    /// Whether the gradient of each argument is needed.
    #[getter]
    fn needs_input_grad<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let wanted =
            |place: &Option<usize>| place.is_some_and(|place| self.operands[place].requires_grad());
        PyTuple::new(py, self.places.iter().map(wanted))
    }
}

/// Encodes the tensors, numbers and absent values among the arguments.
fn recorded_inputs(arguments: &Bound<'_, PyTuple>) -> PyResult<Arguments> {
    let mut kept = Arguments::default();
    if !is_recording() {
        return Ok(kept);
    }
    let is_kept = |argument: &Bound<'_, PyAny>| {
        argument.is_none()
            || argument.is_instance_of::<Tensor>()
            || argument.is_instance_of::<PyInt>()
            || argument.is_instance_of::<PyFloat>()
    };
    for argument in arguments.iter().filter(is_kept) {
        kept.add(&argument)?;
    }
    Ok(kept)
}

/// Runs the forward method without tracking, in a scope with the function's name, and attaches an
/// autograd node to its results.
///
/// `backward` receives the gradients of the results and returns the gradients of all arguments.
#[pyfunction]
pub(crate) fn finish_function<'py>(
    node: &FunctionNode,
    name: &Bound<'py, PyString>,
    forward: &Bound<'py, PyAny>,
    differentiable: &Bound<'py, PyAny>,
    backward: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    let name = name.to_string_lossy();
    let function = host::Function::new(node.operands.clone());
    let returned = {
        let mut scope = open_with(Name::intern(&name, NameKind::Operator), |inputs| {
            node.inputs.encode(inputs);
        });
        if let Some(scope) = &mut scope {
            scope.set_sequence(function.sequence());
        }
        let _scope = UserScope(scope);
        function.forward(|| forward.call0())?
    };
    let single = returned.cast::<Tensor>().is_ok();
    let items: Vec<Bound<'py, PyAny>> = if single {
        vec![returned]
    } else {
        returned.cast::<PyTuple>()?.iter().collect()
    };
    let mut results = Vec::new();
    for item in &items {
        if let Ok(tensor) = item.cast::<Tensor>() {
            let marked = differentiable.call1((item,))?.is_truthy()?;
            results.push((tensor.get().0.clone(), marked));
        }
    }
    let places = node.places.clone();
    let call = move |gradients: &[Option<host::Tensor>]| {
        leave(|py| call_backward(py, &backward, gradients, &places).map_err(keep_raised))
    };
    let finished = function.finish(&format!("{name}Backward"), results, call);
    let mut finished = finished.into_iter();
    let mut wrapped: Vec<Bound<'py, PyAny>> = Vec::new();
    for item in items {
        let result = if item.cast::<Tensor>().is_ok() {
            finished.next()
        } else {
            None
        };
        match result {
            Some(tensor) => wrapped.push(Bound::new(py, Tensor(tensor))?.into_any()),
            None => wrapped.push(item),
        }
    }
    if single {
        return Ok(wrapped.remove(0));
    }
    Ok(PyTuple::new(py, wrapped)?.into_any())
}

fn call_backward(
    py: Python<'_>,
    backward: &Py<PyAny>,
    gradients: &[Option<host::Tensor>],
    places: &[Option<usize>],
) -> PyResult<Vec<Option<host::Tensor>>> {
    let arguments = gradients
        .iter()
        .map(|gradient| gradient.clone().map(Tensor))
        .collect::<Vec<_>>();
    let returned = backward.bind(py).call1(PyTuple::new(py, arguments)?)?;
    let returned: Vec<Bound<'_, PyAny>> = match returned.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![returned],
    };
    if returned.len() < places.len()
        || returned
            .iter()
            .skip(places.len())
            .any(|item| !item.is_none())
    {
        return Err(PyRuntimeError::new_err(format!(
            "function returned an incorrect number of gradients (expected {}, got {})",
            places.len(),
            returned.len()
        )));
    }
    let mut found = vec![None; places.iter().flatten().count()];
    for (item, place) in returned.iter().zip(places) {
        let Some(place) = place else {
            continue;
        };
        if item.is_none() {
            continue;
        }
        let tensor = item
            .cast::<Tensor>()
            .map_err(|_| PyTypeError::new_err("expected Variable or None (got something else)"))?;
        found[*place] = Some(tensor.get().0.clone());
    }
    Ok(found)
}

/// The scope of the forward method, closed on drop.
struct UserScope(Option<OpenScope>);

impl Drop for UserScope {
    fn drop(&mut self) {
        if let Some(scope) = self.0.take() {
            scope.close();
        }
    }
}
