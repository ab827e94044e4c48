//! The threads that started recordings, and calls of torch that must not see the object in its slot.
//!
//! `interposed` answers torch's questions by the former; `_frameworks/fast_ranges` makes the latter.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mindprof_pytorch::Observer;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

/// Calls a function of torch that takes the object in a thread's slot for its own profiler. Ours is
/// hidden from it meanwhile.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct TorchWithoutSlot {
    /// The original function.
    #[pyo3(get)]
    theirs: Py<PyAny>,
}

#[pymethods]
impl TorchWithoutSlot {
    #[new]
    const fn new(theirs: Py<PyAny>) -> Self {
        Self { theirs }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = || self.theirs.bind(args.py()).call(args, kwargs);
        match Observer::present() {
            Some(observer) => observer.without_slot(call),
            None => call(),
        }
    }

    /// Returns the original function's attribute of this name, such as `__code__` or `__name__`, so
    /// that other tools can read this object as they read the function.
    fn __getattr__<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        attribute_of(self.theirs.bind(name.py()), name)
    }
}

/// Returns an attribute of the function that a stand-in replaces. `__wrapped__` is the function
/// itself, by which `inspect` finds its signature.
pub(crate) fn attribute_of<'py>(
    theirs: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    if name == "__wrapped__" {
        return Ok(theirs.clone());
    }
    theirs.getattr(name)
}

thread_local! {
    /// The process, and how many recordings were started on this thread in it.
    static RECORDINGS: RefCell<(u32, Arc<AtomicUsize>)> = RefCell::default();
}

/// A recording, as long as it runs, of the thread that started it.
#[derive(Debug)]
pub(crate) struct RecordedThread(Arc<AtomicUsize>);

impl RecordedThread {
    pub(crate) fn current() -> Self {
        let recordings = recordings_here();
        // Relaxed: it is changed with Python's lock held.
        recordings.fetch_add(1, Ordering::Relaxed);
        Self(recordings)
    }
}

impl Drop for RecordedThread {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the counter of this thread. A forked child starts from zero.
fn recordings_here() -> Arc<AtomicUsize> {
    RECORDINGS.with_borrow_mut(|(process, recordings)| {
        let own = std::process::id();
        if *process != own {
            (*process, *recordings) = (own, Arc::default());
        }
        Arc::clone(recordings)
    })
}

/// Returns whether this thread started a recording that runs. With memory, torch lets the threads
/// that work for it inherit that.
pub(crate) fn is_recorded_here() -> bool {
    recordings_here().load(Ordering::Relaxed) != 0
        || Observer::present().is_some_and(Observer::hears_memory_here)
}
