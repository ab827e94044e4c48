//! Tests of the runtime through its public face.

mod errors;
mod memory;
mod nesting;
mod properties;
mod values;
