//! The operators: methods of `Tensor`, each named as in torch and opening one scope of the recorder.
//!
//! A composite operator calls other operators, and so nests as torch's does; which calls which was taken from traces.

mod arithmetic;
mod copy;
mod create;
mod matmul;
mod product;
mod reduce;
mod unary;
mod view;

pub use create::manual_seed;
pub use reduce::KeepDims;
