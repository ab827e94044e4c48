//! Tests of the runtime through its public face.

mod errors;
mod gradients;
mod memory;
mod nesting;
mod properties;
mod values;
