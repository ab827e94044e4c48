//! The Python bindings of the embedded runtime's tensors, one file per subject.
//!
//! `mindtorch_v2` re-exports these classes and functions under torch's names.

mod arguments;
mod arithmetic;
mod autocast;
mod autograd;
mod creation;
mod dtype;
mod function;
mod in_place;
mod indexing;
mod nn;
mod numpy;
mod operator;
mod print;
mod reduce;
mod scalar;
mod sorting;
mod views;

use mindtorch_tensor as host;
use pyo3::prelude::*;

use crate::error::Error;

pub(crate) use arithmetic::{add, div, floor_divide, maximum, minimum, mul, sub};
pub(crate) use autocast::{clear_autocast_cache, current_autocast, enter_autocast, leave_autocast};
pub(crate) use autograd::{
    GradientNode, HookHandle, backward, grad, is_grad_enabled, set_grad_enabled,
};
pub(crate) use creation::{
    arange, as_tensor, empty, eye, first_operand, full, linspace, live_bytes, manual_seed, ones,
    rand, randint, randn, randperm, tensor, zeros,
};
pub(crate) use dtype::{DType, Device};
pub(crate) use function::{FunctionNode, finish_function};
pub(crate) use nn::{
    adaptive_avg_pool2d, avg_pool2d, batch_norm, conv2d, cross_entropy, dropout, embedding, gelu,
    huber_loss, layer_norm, linear, max_pool2d, mse_loss, nll_loss, scaled_dot_product_attention,
    smooth_l1_loss,
};
pub(crate) use numpy::from_numpy;
pub(crate) use operator::{OperatorScope, set_num_threads, tensor_from_bytes, tensor_to_bytes};
pub(crate) use print::{print_options, set_printoptions};
pub(crate) use sorting::{
    binary_cross_entropy_with_logits, elu, leaky_relu, logsigmoid, silu, softplus,
};
pub(crate) use views::{broadcast_tensors, cat, stack, r#where};

/// A multi-dimensional array of numbers on the embedded runtime.
///
/// It follows the interface of `torch.Tensor`, and its operators are recorded by the profiler.
#[pyclass(frozen, subclass, weakref, module = "mindtorch_v2")]
pub(crate) struct Tensor(pub(crate) host::Tensor);

/// Converts the result of an operator to Python, and its error to an exception.
#[inline]
fn wrap(result: host::Result<host::Tensor>) -> PyResult<Tensor> {
    match result {
        Ok(tensor) => Ok(Tensor(tensor)),
        Err(error) => Err(Error::from(error).into()),
    }
}

/// Converts several results of an operator to Python.
fn wrap_all(result: host::Result<Vec<host::Tensor>>) -> PyResult<Vec<Tensor>> {
    let tensors = result.map_err(Error::from)?;
    Ok(tensors.into_iter().map(Tensor).collect())
}

/// Runs an in-place operator and returns the tensor itself, so that calls can be chained.
fn written(
    slf: Bound<'_, Tensor>,
    call: impl FnOnce(&host::Tensor) -> host::Result<()>,
) -> PyResult<Bound<'_, Tensor>> {
    call(&slf.get().0).map_err(Error::from)?;
    Ok(slf)
}
