//! The operators: methods of `Tensor` with torch's names, each of which opens one recorder scope.
//!
//! A composite operator calls other operators, so that scopes nest as in torch; the nesting was
//! taken from torch's traces (`tests/nesting`).

mod advanced;
mod arithmetic;
mod binary_loss;
mod compare;
mod composite;
mod copy;
mod create;
mod curve;
mod diagonal;
mod extreme;
mod fused;
mod in_place;
mod index;
mod join;
mod matmul;
mod maximum;
mod median;
mod named;
mod nn;
mod power;
mod prod;
mod product;
mod random;
mod reduce;
mod roll;
mod scatter;
mod sorting;
mod spread;
mod unary;
mod unique;
mod vector_norm;
mod view;

pub use binary_loss::BinaryCrossEntropy;
pub use compare::{Comparison, Logic};
pub use curve::Curve;
pub use extreme::{End, Truth};
pub use index::Triangle;
pub use nn::{Approximation, BatchNorm, Bend, Convolution, CrossEntropy, Divisor, Pool, Reduction};
pub use random::manual_seed;
pub use reduce::KeepDims;
pub use spread::Spread;
pub use unary::Elementwise;
pub use unique::UniqueOptions;
