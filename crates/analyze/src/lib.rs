//! What a profile means: pure functions from [`mindprof_model::Profile`] to trees and rows.
//!
//! Nothing here reads a clock or a file, or rounds for display: times stay whole nanoseconds.

mod averages;
mod keys;
mod tree;

pub use averages::{Average, Averages, GroupBy, averages};
pub use keys::Keys;
pub use tree::Tree;
