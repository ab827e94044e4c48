//! The names that Python gives its threads, by the system's thread id.
//!
//! They are read from the private data of `threading` when a window closes. No Python function is
//! called, because recordings that continue would record it. A thread that has ended is known while
//! its object is alive; all others keep the system's name.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PySet};
use rustc_hash::FxHashMap;

use crate::pending_exception::ignore_errors;

/// Thread names by the system's thread id.
pub(crate) type ThreadNames = FxHashMap<u64, String>;

/// Returns the names of the threads that Python code started. The main thread keeps the name of its
/// program, and foreign threads keep the names that their creators gave them.
pub(crate) fn thread_names(py: Python<'_>) -> ThreadNames {
    let mut names = ThreadNames::default();
    // The data of `threading` is private: if it is not as expected, no names are known.
    ignore_errors(py, add_names(py, &mut names));
    names
}

fn add_names(py: Python<'_>, names: &mut ThreadNames) -> PyResult<()> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Some(threading) = modules.cast::<PyDict>()?.get_item("threading")? else {
        return Ok(());
    };
    let main = threading.getattr("_main_thread")?;
    let foreign = threading.getattr("_DummyThread")?;
    let mut add = |thread: &Bound<'_, PyAny>| -> PyResult<()> {
        if !thread.is(&main) && !thread.is_instance(&foreign)? {
            let number: Option<u64> = thread.getattr("_native_id")?.extract()?;
            if let Some(number) = number {
                names.insert(number, thread.getattr("_name")?.extract()?);
            }
        }
        Ok(())
    };
    // Ended threads come first, so that a living thread that reuses an id overrides them.
    let known = threading.getattr("_dangling")?.getattr("data")?;
    for reference in known.cast::<PySet>()?.iter() {
        let thread = reference.call0()?;
        if !thread.is_none() {
            // Fails for a thread that has not started: it has no id yet.
            ignore_errors(py, add(&thread));
        }
    }
    let living = threading.getattr("_active")?;
    for thread in living.cast::<PyDict>()?.values() {
        ignore_errors(py, add(&thread));
    }
    Ok(())
}
