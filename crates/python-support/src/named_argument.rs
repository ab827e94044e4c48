//! Argument extraction whose errors name the argument.
//!
//! `PyO3` puts the name of the argument into an exception note, which is not part of the message
//! and does not exist in Python 3.10.

use pyo3::PyTypeCheck;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyException, PyOverflowError, PyTypeError, PyValueError};
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
        .map_err(|_| text(argument, expected, value).map_or_else(|it| it, PyTypeError::new_err))
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
        if !error.is_instance_of::<PyException>(value.py()) {
            return error;
        }
        let text = match text(argument, expected, value) {
            Ok(text) => text,
            Err(interrupt) => return interrupt,
        };
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            PyValueError::new_err(text)
        } else {
            PyTypeError::new_err(text)
        }
    })
}

/// Returns the message, or the interrupt that came while the value was formatted.
#[cold]
fn text(argument: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let found = match value.repr() {
        Ok(found) => found.to_string_lossy().into_owned(),
        Err(error) if error.is_instance_of::<PyException>(value.py()) => {
            format!("an instance of {}", value.get_type())
        }
        Err(interrupt) => return Err(interrupt),
    };
    Ok(format!(
        "argument '{argument}': expected {expected}, found {found}"
    ))
}
