//! Attributes of other modules that are replaced while a recording needs it, and calls that run to
//! their end.
//!
//! A signal handler may raise an exception between any two instructions of Python code, but not
//! inside of these functions. They are therefore written in Rust: an interrupt comes before or
//! after them, and leaves nothing half done.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::pending_exception::{PendingException, ignore_errors};

/// An attribute of a module or class that holds another value until the object is dropped.
///
/// The recordings that need the value share the object: the last one to end drops it, however it
/// ends. If someone else has changed the attribute since, it is left alone.
#[pyclass(frozen, weakref, module = "mindprof._core")]
pub(crate) struct Replacement {
    attribute: Mutex<Option<Attribute>>,
}

struct Attribute {
    owner: Py<PyAny>,
    name: Py<PyString>,
    ours: Py<PyAny>,
    theirs: Py<PyAny>,
    /// A function that returns whether the attribute stays as it is.
    stays: Option<Py<PyAny>>,
}

#[pymethods]
impl Replacement {
    /// Sets the attribute to `ours`. It gets back its current value, or `theirs`, unless `stays`
    /// returns true then. Fails if the owner itself does not have the attribute.
    #[new]
    #[pyo3(signature = (owner, name, ours, theirs = None, stays = None))]
    fn new(
        owner: Bound<'_, PyAny>,
        name: Bound<'_, PyString>,
        ours: Py<PyAny>,
        theirs: Option<Py<PyAny>>,
        stays: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let Some(found) = own_value(&owner, &name) else {
            return Err(PyAttributeError::new_err(name.unbind()));
        };
        owner.setattr(&name, &ours)?;
        let attribute = Attribute {
            owner: owner.unbind(),
            name: name.unbind(),
            ours,
            theirs: theirs.unwrap_or_else(|| found.unbind()),
            stays,
        };
        Ok(Self {
            attribute: Mutex::new(Some(attribute)),
        })
    }

    /// Whether the attribute holds our value.
    #[getter]
    fn is_in_place(&self, py: Python<'_>) -> bool {
        let attribute = self.attribute.lock();
        let attribute = attribute.unwrap_or_else(PoisonError::into_inner);
        attribute
            .as_ref()
            .is_some_and(|attribute| attribute.is_ours(py))
    }

    /// Restores the attribute now. A second call has no effect.
    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        let attribute = self.attribute.lock();
        let attribute = attribute.unwrap_or_else(PoisonError::into_inner).take();
        attribute.map_or(Ok(()), |attribute| attribute.restore(py))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        let attribute = self.attribute.get_mut();
        let Some(attribute) = attribute.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        Python::try_attach(|py| {
            let _pending = PendingException::set_aside(py);
            // It fails only while the interpreter shuts down.
            ignore_errors(py, attribute.restore(py));
        });
    }
}

impl Attribute {
    fn restore(self, py: Python<'_>) -> PyResult<()> {
        if let Some(stays) = &self.stays
            && stays.bind(py).call0()?.is_truthy()?
        {
            return Ok(());
        }
        if self.is_ours(py) {
            self.owner.bind(py).setattr(&self.name, &self.theirs)?;
        }
        Ok(())
    }

    fn is_ours(&self, py: Python<'_>) -> bool {
        let found = own_value(self.owner.bind(py), self.name.bind(py));
        found.is_some_and(|found| found.is(&self.ours))
    }
}

/// Returns an attribute as the owner's dictionary holds it. `getattr` would bind methods.
fn own_value<'py>(
    owner: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    let names = owner.getattr("__dict__");
    let found = names.and_then(|names| names.get_item(name));
    ignore_errors(owner.py(), found)
}

/// The number of calls after which [`complete`] gives up.
const MOST_CALLS: usize = 100;

/// Calls `function` until a call returns, however often signal handlers interrupt it, and returns
/// the exceptions that did. `function` can be called again after it was interrupted.
#[pyfunction]
pub(crate) fn complete<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = function.py();
    let interrupts = PyList::empty(py);
    for _ in 0..MOST_CALLS {
        match function.call0() {
            Ok(_) => return Ok(interrupts),
            Err(error) => interrupts.append(error.into_value(py))?,
        }
    }
    function.call0()?;
    Ok(interrupts)
}
