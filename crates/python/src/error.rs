//! Maps errors of the engine to Python exceptions.

use std::io;

use mindprof_formats::Error as FormatError;
use mindprof_pytorch::Error as PytorchError;
use mindprof_report::Error as ReportError;
use mindprof_trace::Error as TraceError;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyAttributeError, PyFileNotFoundError, PyIsADirectoryError, PyOSError, PyPermissionError,
    PyRuntimeError, PyValueError,
};

pyo3::create_exception!(
    mindprof._core,
    ProfilerError,
    PyRuntimeError,
    "An error specific to mindprof, such as an invalid trace file or an inconsistent profile."
);

/// An error of any crate of the engine, on its way to Python.
///
/// Calls through `Enter` convert their errors to it. It becomes the exception that torch would
/// raise, or a `ProfilerError`.
#[derive(Debug)]
pub(crate) enum Error {
    /// An error in sorting rows or in writing an export.
    Format(FormatError),
    /// An error in attaching to the torch of this process.
    Pytorch(PytorchError),
    /// An error in laying out a table or a report.
    Report(ReportError),
    /// An error in reading or writing a trace.
    Trace(TraceError),
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

impl From<PytorchError> for Error {
    fn from(error: PytorchError) -> Self {
        Self::Pytorch(error)
    }
}

impl From<ReportError> for Error {
    fn from(error: ReportError) -> Self {
        Self::Report(error)
    }
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Format(error) => format_error(&error),
            Error::Pytorch(error) => ProfilerError::new_err(error.to_string()),
            Error::Report(error) => report_error(&error),
            Error::Trace(error) => trace_error(&error),
        }
    }
}

fn format_error(error: &FormatError) -> PyErr {
    let message = error.to_string();
    match cause(error) {
        FormatError::Io(error) => io_error(error, message),
        FormatError::Trace(error) => trace_error(error),
        // torch looks the sort key up as an attribute of the row.
        FormatError::UnknownSortKey { name, .. } => PyAttributeError::new_err(format!(
            "'FunctionEventAvg' object has no attribute '{name}'"
        )),
        FormatError::UnknownStackMetric { .. } | FormatError::NothingSpent => {
            PyValueError::new_err(message)
        }
        _ => ProfilerError::new_err(message),
    }
}

fn trace_error(error: &TraceError) -> PyErr {
    let message = error.to_string();
    match error.io_cause() {
        Some(cause) => io_error(cause, message),
        None => ProfilerError::new_err(message),
    }
}

fn report_error(error: &ReportError) -> PyErr {
    let message = error.to_string();
    match error {
        ReportError::UnknownTimeUnit { .. } => PyValueError::new_err(message),
        ReportError::Format(error) => format_error(error),
        _ => ProfilerError::new_err(message),
    }
}

fn cause(error: &FormatError) -> &FormatError {
    match error {
        FormatError::File { source, .. } => cause(source),
        other => other,
    }
}

fn io_error(error: &io::Error, message: String) -> PyErr {
    match error.kind() {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
        io::ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
        io::ErrorKind::IsADirectory => PyIsADirectoryError::new_err(message),
        _ => PyOSError::new_err(message),
    }
}
