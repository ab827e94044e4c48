//! The embedded runtime's half of `mindprof._core`: tensors, autograd and operators.
//!
//! The Python package `mindtorch_v2` is its only user. `crates/python` builds this crate into the
//! native module if its feature `runtime` is on, and calls [`register`] and [`prefill`] at import.

#![expect(
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    reason = "PyO3 hands over extracted arguments by value and `self` by reference"
)]

mod error;
mod roles;
mod size;
mod tensor;

use pyo3::prelude::*;

pub use self::roles::{note_gradient, note_role};
pub use mindtorch_tensor::set_list_values_recorded;

/// Adds the runtime's classes and functions to the native module.
///
/// # Errors
/// Returns an error if the interpreter cannot create a class.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        (classes: $($class:ident),*; functions: $($function:ident),*;) => {
            $(module.add_class::<tensor::$class>()?;)*
            $(module.add_function(wrap_pyfunction!(tensor::$function, module)?)?;)*
        };
    }
    add! {
        classes: DType, Device, FunctionNode, HookHandle, OperatorScope, Tensor;
        functions: adaptive_avg_pool2d, add, arange, as_tensor, avg_pool2d, backward, batch_norm,
            binary_cross_entropy_with_logits, broadcast_tensors, cat,
            clear_autocast_cache, conv2d, cross_entropy, current_autocast, div, dropout, elu,
            embedding, empty, enter_autocast, eye, finish_function, first_operand, floor_divide, from_numpy,
            full,
            gelu, grad, huber_loss, is_grad_enabled, layer_norm, leaky_relu,
            leave_autocast, linear, linspace, live_bytes, logsigmoid, manual_seed,
            max_pool2d, maximum, minimum, mse_loss, mul, nll_loss, ones, print_options, rand,
            randint, randn, randperm, scaled_dot_product_attention, set_grad_enabled,
            set_num_threads, set_printoptions, silu, smooth_l1_loss, softplus, stack, sub,
            tensor, tensor_from_bytes, tensor_to_bytes, r#where, zeros;
    }
    module.add_function(wrap_pyfunction!(size::look_up_sizes, module)?)
}

/// Fills caches at import that `PyO3` would otherwise fill on first use, possibly in a forked
/// child.
pub fn prefill(py: Python<'_>) {
    // `PyO3` creates the type of a class that is not exported with its first instance.
    py.get_type::<tensor::GradientNode>();
}
