//! The native module `mindprof._core`: extract, call the engine, wrap, and nothing else.
//!
//! The Python packages `mindprof` and `mindtorch_v2` are its only users; what it holds is in `_core.pyi`.

#![expect(
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    reason = "PyO3 hands over extracted arguments by value and `self` by reference"
)]

mod averages;
mod enter;
mod error;
mod profile;
mod record_function;
mod session;
mod table;
mod tensor;

#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::averages::{FunctionEventAvg, self_cpu_time_total, total_average};
    #[pymodule_export]
    use crate::error::ProfilerError;
    #[pymodule_export]
    use crate::profile::Profile;
    #[pymodule_export]
    use crate::record_function::RecordFunction;
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::table::table;
    #[pymodule_export]
    use crate::tensor::{
        DType, Device, FunctionNode, HookHandle, Tensor, adaptive_avg_pool2d, arange, backward,
        batch_norm, broadcast_tensors, cat, conv2d, cross_entropy, dropout, embedding, empty, eye,
        finish_function, from_numpy, full, gelu, grad, is_grad_enabled, layer_norm, linear,
        linspace, live_bytes, manual_seed, max_pool2d, mse_loss, nll_loss, ones, print_options,
        rand, randint, randn, randperm, scaled_dot_product_attention, set_grad_enabled,
        set_printoptions, stack, tensor, r#where, zeros,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // The earlier the clock has its first anchor, the better its rate is known.
        mindprof_record::Session::prepare();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
