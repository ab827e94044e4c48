//! Maps errors of the embedded runtime to Python exceptions.

use mindtorch_tensor::{Error as TensorError, Exception};
use pyo3::PyErr;
use pyo3::exceptions::{
    PyIndexError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};

/// An error of an operator, on its way to Python.
///
/// The wrapper exists because this crate owns neither the runtime's error nor `PyErr`, so it cannot
/// convert one into the other directly.
#[derive(Debug)]
pub(crate) struct Error(TensorError);

impl From<TensorError> for Error {
    fn from(error: TensorError) -> Self {
        Self(error)
    }
}

impl From<Error> for PyErr {
    fn from(Error(error): Error) -> Self {
        let message = error.to_string();
        match error.exception() {
            Exception::Runtime => PyRuntimeError::new_err(message),
            Exception::Index => PyIndexError::new_err(message),
            Exception::Type => PyTypeError::new_err(message),
            Exception::Value => PyValueError::new_err(message),
            Exception::NotImplemented => PyNotImplementedError::new_err(message),
        }
    }
}
