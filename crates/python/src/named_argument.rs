//! Arguments whose errors name them: `PyO3` says what was wrong, but of which argument it says in a
//! note, which the text of the exception does not hold and Python 3.10 has no place for.

use pyo3::PyTypeCheck;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Takes an argument that is an instance of a class.
///
/// # Errors
/// A `TypeError` that says what was `expected` of which `argument`.
#[inline]
pub(crate) fn instance<'a, 'py, T: PyTypeCheck>(
    argument: &str,
    expected: &str,
    value: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, T>> {
    value
        .cast()
        .map_err(|_| PyTypeError::new_err(text(argument, expected, value)))
}

/// Takes an argument that is a number, or a list of them.
///
/// # Errors
/// As above; a `ValueError` if a number has too many bits or is below what its kind begins with.
#[inline]
pub(crate) fn number<'py, T: FromPyObjectOwned<'py, Error = PyErr>>(
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
