//! The names that Python gives its threads, by the system's numbers of them.
//!
//! Read when a window closes, out of what `threading` holds, without a call of a Python function: a
//! recording that goes on would hold it. A thread that has ended is known as long as someone holds
//! its object; of others the system's name stands.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PySet};
use rustc_hash::FxHashMap;

/// Names of threads by number.
pub(crate) type ThreadNames = FxHashMap<u64, String>;

/// Returns the names of the threads that Python code started. The main thread keeps its program's
/// name, and a thread that others started the one they gave it.
pub(crate) fn thread_names(py: Python<'_>) -> ThreadNames {
    let mut names = ThreadNames::default();
    // What `threading` holds is its own business: where it is not as expected, nothing is known.
    let _ = add_names(py, &mut names);
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
    // Those that ended come first: a number that was given again is that of the living.
    let known = threading.getattr("_dangling")?.getattr("data")?;
    for reference in known.cast::<PySet>()?.iter() {
        let thread = reference.call0()?;
        if !thread.is_none() {
            // One that has not begun has no number.
            let _ = add(&thread);
        }
    }
    let living = threading.getattr("_active")?;
    for thread in living.cast::<PyDict>()?.values() {
        let _ = add(&thread);
    }
    Ok(())
}
