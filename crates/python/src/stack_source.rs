//! The source of the stacks of operators: the followed calls of the thread if some session traces
//! them, and otherwise its frames.

use mindprof_record::{Stack, set_stack_source, wants_all_calls};
use pyo3::prelude::*;

use crate::{python_calls, sampled_stacks};

/// Makes the recorder ask for stacks here.
pub(crate) fn provide() {
    set_stack_source(operator_stack);
}

/// Returns the Python stack of an operator that this thread calls.
fn operator_stack() -> Stack {
    if wants_all_calls() {
        python_calls::operator_stack()
    } else {
        sampled_stacks::operator_stack()
    }
}

/// Stops recording what this thread calls until [`resume_calls`], for calls that return in between,
/// such as those inside of an import. Operators get the stack that is known now. Returns whether
/// anything was being recorded.
#[pyfunction]
pub(crate) fn pause_calls(py: Python<'_>) -> PyResult<bool> {
    let was_sampled = sampled_stacks::pause();
    Ok(python_calls::pause(py)? || was_sampled)
}

/// Records what this thread calls again, unless another tool has installed a hook meanwhile.
#[pyfunction]
pub(crate) fn resume_calls(py: Python<'_>) -> PyResult<()> {
    sampled_stacks::resume();
    python_calls::resume(py)
}

/// Registers `function` as one that calls the module it receives as `self`. Its calls are then
/// recorded under the module's name.
#[pyfunction]
pub(crate) fn name_module_calls(function: &Bound<'_, PyAny>) -> PyResult<()> {
    let code = function.getattr("__code__")?;
    sampled_stacks::add_module_caller(&code);
    python_calls::add_module_caller(code);
    Ok(())
}
