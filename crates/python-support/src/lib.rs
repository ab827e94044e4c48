//! Shared parts of the two halves of `mindprof._core`: the profiler's (`crates/python`) and the
//! embedded runtime's (`runtime/python`).
//!
//! The crate defines the rules for the GIL and for forks, the caches that are filled at import, and
//! the extraction of operator arguments from Python. It depends on neither half.

pub mod arguments;
pub mod enter;
mod foreign_number;
pub mod gil_cell;
pub mod interned_names;
mod known_layouts;
pub mod named_argument;
pub mod stack_notes;
mod tensor_argument;
mod tensor_input;

use pyo3::panic::PanicException;
use pyo3::prelude::*;

pub use self::tensor_input::TensorInput;

/// Fills the cells of this crate at import, see [`mod@interned_names`].
///
/// # Errors
/// Returns an error if the builtin `getattr` cannot be looked up.
pub fn prefill(py: Python<'_>) -> PyResult<()> {
    foreign_number::prefill(py);
    tensor_argument::prefill(py)?;
    // PyO3 creates this type when the first panic reaches Python, which may be in a forked child.
    py.get_type::<PanicException>();
    Ok(())
}
