//! The class `Size` of the package `mindtorch_v2`, in which shapes are returned.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static SIZE: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Returns the class `Size`.
pub(crate) fn size_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    SIZE.import(py, "mindtorch_v2._named", "Size")
}

/// Looks up the class `Size`. The package `mindtorch_v2` calls it during its import, so that the
/// cell is filled before the process can fork.
#[pyfunction]
pub(crate) fn look_up_sizes(py: Python<'_>) -> PyResult<()> {
    size_class(py).map(|_| ())
}
