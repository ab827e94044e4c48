//! The operators of layers and losses.

mod attention;
mod average_pool;
mod convolution;
mod difference_loss;
mod dropout;
mod embedding;
mod gelu;
mod linear;
mod loss;
mod norm;
mod pool;
mod softmax;

pub use average_pool::Divisor;
pub use convolution::Convolution;
pub use difference_loss::Bend;
pub use gelu::Approximation;
pub use loss::{CrossEntropy, Reduction};
pub use norm::BatchNorm;
pub use pool::Pool;
