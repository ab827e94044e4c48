//! Tests of the runtime through its public API.

mod errors;
mod gradients;
mod memory;
mod nesting;
mod properties;
mod values;
