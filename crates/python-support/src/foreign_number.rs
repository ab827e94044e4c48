//! Numbers that are not Python's own: scalars of numpy, and objects that convert to an integer by
//! `__index__`, such as symbolic sizes. `arguments` asks for them last.
//!
//! Tensors and arrays have `__index__` too, but reading one may wait for a device. They are told
//! apart by their shape, which only numpy's scalars share with them.

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::arguments::Number;
use crate::interned_names;
use crate::tensor_argument::{RecentClasses, answer};

interned_names! {
    /// Attributes of numbers.
    pub(crate) struct NumberNames {
        dtype = "dtype",
        index = "__index__",
        kind = "kind",
    }
}

/// Fills the cells of this module at import.
pub(crate) fn prefill(py: Python<'_>) {
    NumberNames::get(py);
}

/// Extracts numbers from objects without a shape.
#[derive(Default)]
pub(crate) struct IndexReader {
    indexless: RecentClasses,
}

impl IndexReader {
    /// Returns the integer that `__index__` returns, or `None` if there is none of 64 bits.
    ///
    /// # Errors
    /// Passes on exceptions of the object that are not an `Exception`, such as `SystemExit`.
    pub(crate) fn read(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
        let py = value.py();
        let Some(index) = self.indexless.ask(value, &NumberNames::get(py).index)? else {
            return Ok(None);
        };
        let number = index.call0().and_then(|number| number.extract());
        Ok(answer(py, number)?.map(Number::Int))
    }
}

/// Returns whether an object is a scalar of numpy. Its class decides, so that numpy need not be
/// imported.
pub(crate) fn is_numpy_scalar(value: &Bound<'_, PyAny>) -> bool {
    let is_generic = |class: &Bound<'_, PyType>| {
        let is = |text: PyResult<Bound<'_, pyo3::types::PyString>>, name: &str| {
            text.is_ok_and(|text| text.to_string_lossy() == name)
        };
        is(class.name(), "generic") && is(class.module(), "numpy")
    };
    let classes = value.get_type().mro();
    classes
        .iter()
        .any(|class| class.cast::<PyType>().is_ok_and(is_generic))
}

/// Returns the number of a scalar of numpy, or `None` if it is complex or no number.
///
/// # Errors
/// Passes on exceptions that are not an `Exception`.
pub(crate) fn numpy_number(value: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
    let py = value.py();
    let names = NumberNames::get(py);
    let kind = value.getattr(&names.dtype);
    let kind = kind.and_then(|dtype| dtype.getattr(&names.kind));
    let Some(kind) = answer(py, kind.and_then(|kind| kind.extract::<String>()))? else {
        return Ok(None);
    };
    let number = match kind.as_str() {
        "b" => value.is_truthy().map(Number::Bool),
        "i" | "u" => value.extract().map(Number::Int),
        "f" => value.extract().map(Number::Float),
        _ => return Ok(None),
    };
    answer(py, number)
}
