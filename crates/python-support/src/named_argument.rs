//! Argument extraction whose errors name the argument.
//!
//! `PyO3` puts the name of the argument into an exception note, which is not part of the message
//! and does not exist in Python 3.10.

use pyo3::PyTypeCheck;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Casts an argument to a class.
///
/// # Errors
/// Returns a `TypeError` that names the `argument` and what was `expected`.
#[inline]
pub fn instance<'a, 'py, T: PyTypeCheck>(
    argument: &str,
    expected: &str,
    value: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, T>> {
    value
        .cast()
        .map_err(|_| PyTypeError::new_err(text(argument, expected, value)))
}

/// Extracts an argument that is a number or a list of numbers.
///
/// # Errors
/// Returns a `TypeError` as [`instance`] does, or a `ValueError` if a number is out of range.
#[inline]
pub fn number<'py, T: FromPyObjectOwned<'py, Error = PyErr>>(
    argument: &str,
    expected: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(|error: PyErr| {
        let text = text(argument, expected, value);
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            PyValueError::new_err(text)
        } else {
            PyTypeError::new_err(text)
        }
    })
}

#[cold]
fn text(argument: &str, expected: &str, value: &Bound<'_, PyAny>) -> String {
    let found = value.repr().map_or_else(
        |_| format!("an instance of {}", value.get_type()),
        |found| found.to_string_lossy().into_owned(),
    );
    format!("argument '{argument}': expected {expected}, found {found}")
}
