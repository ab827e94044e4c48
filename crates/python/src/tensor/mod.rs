//! Tensors of the embedded runtime, as Python holds them: one file per subject.

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

pub(crate) use arithmetic::{maximum, minimum};
pub(crate) use autocast::{clear_autocast_cache, current_autocast, enter_autocast, leave_autocast};
pub(crate) use autograd::{
    GradientNode, HookHandle, backward, grad, is_grad_enabled, set_grad_enabled,
};
pub(crate) use creation::{
    arange, as_tensor, empty, eye, full, linspace, live_bytes, manual_seed, ones, rand, randint,
    randn, randperm, tensor, zeros,
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

/// An array of numbers.
#[pyclass(frozen, subclass, weakref, module = "mindtorch_v2")]
pub(crate) struct Tensor(pub(crate) host::Tensor);

/// Hands the result of an operator to Python.
#[inline]
fn wrap(result: host::Result<host::Tensor>) -> PyResult<Tensor> {
    match result {
        Ok(tensor) => Ok(Tensor(tensor)),
        Err(error) => Err(Error::from(error).into()),
    }
}

/// Hands several results of an operator to Python.
fn wrap_all(result: host::Result<Vec<host::Tensor>>) -> PyResult<Vec<Tensor>> {
    let tensors = result.map_err(Error::from)?;
    Ok(tensors.into_iter().map(Tensor).collect())
}

/// Returns the tensor that an operator has written to, for the call to go on with.
fn written(
    slf: Bound<'_, Tensor>,
    call: impl FnOnce(&host::Tensor) -> host::Result<()>,
) -> PyResult<Bound<'_, Tensor>> {
    call(&slf.get().0).map_err(Error::from)?;
    Ok(slf)
}
