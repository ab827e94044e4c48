//! The operators behind layers and losses.

mod attention;
mod convolution;
mod dropout;
mod embedding;
mod gelu;
mod linear;
mod loss;
mod norm;
mod pool;
mod softmax;

pub use convolution::Convolution;
pub use gelu::Approximation;
pub use loss::{CrossEntropy, Reduction};
pub use norm::BatchNorm;
pub use pool::Pool;
