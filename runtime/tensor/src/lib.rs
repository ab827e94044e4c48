//! The embedded runtime: strided tensors over shared storage, operators on them and autograd.
//!
//! It gives the profiler a workload that needs no other framework; `mindtorch_v2` is its Python
//! API. An operator in `ops` opens a recorder scope through `dispatch`, works out the shape and the
//! dtype of its result, and calls a loop in `kernels`. Operators have torch's names and nesting, so
//! that a profile of this runtime reads like one of torch.

mod autocast;
mod autograd;
mod dispatch;
mod dtype;
mod element;
mod elements;
mod error;
mod exception;
mod kernels;
mod layout;
mod live;
mod logical;
mod operand;
mod operator;
mod ops;
mod scalar;
mod shape;
mod storage;
mod tensor;
mod text;

pub use autocast::{Autocast, autocast, clear_autocast_cache, enter_autocast, leave_autocast};
pub use autograd::{
    Function, Hook, RetainGraph, Unused, backward, gradients, is_grad_enabled, set_grad_enabled,
};
pub use dispatch::set_list_values_recorded;
pub use dtype::DType;
pub use element::Element;
pub use elements::Owner;
pub use error::{Error, Result};
pub use exception::Exception;
pub use kernels::{Put, set_thread_count};
pub use live::live_bytes;
pub use logical::Logical;
pub use operand::Operand;
pub use operator::{OperatorInput, open_operator};
pub use ops::{
    Approximation, BatchNorm, Bend, BinaryCrossEntropy, Comparison, Convolution, CrossEntropy,
    Curve, Divisor, Elementwise, End, KeepDims, Logic, Pool, Reduction, Spread, Triangle, Truth,
    UniqueOptions, manual_seed,
};
pub use scalar::Scalar;
pub use tensor::Tensor;
pub use text::PrintOptions;
