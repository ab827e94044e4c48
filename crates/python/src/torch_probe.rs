//! The probe of a running torch: listens while Python runs a few known operators.
//!
//! `mindprof_pytorch` learns from them how torch lays out its objects, and builds the observer.

use std::sync::{Mutex, PoisonError};

use mindprof_pytorch::{Facts, Observer, Probe, Symbols, TensorSamples};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::Error;

/// Listens to the operators of this thread from construction until `finish()`.
///
/// Python creates it once, runs the operators that the probe expects, and passes to `finish` the
/// facts it must have seen.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct TorchProbe {
    probe: Mutex<Option<Probe>>,
}

#[pymethods]
impl TorchProbe {
    #[new]
    fn new() -> PyResult<Self> {
        let symbols = Symbols::find().map_err(Error::from)?;
        Ok(Self {
            probe: Mutex::new(Some(Probe::begin(symbols))),
        })
    }

    /// Builds the observer from what the probe saw and from facts known to Python: the addresses of
    /// two tensors, the sequence numbers of two autograd nodes, and the addresses of sample tensors
    /// (plain ones, a large one, four special ones, and a wrapper with the tensor that it wraps).
    /// Returns whether the observer can read tensors in place.
    fn finish(
        &self,
        tensors: [u64; 2],
        sequences: [u64; 2],
        plain: Vec<u64>,
        large: u64,
        others: [u64; 4],
        wrapper: [u64; 2],
    ) -> PyResult<bool> {
        let probe = self
            .probe
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(probe) = probe else {
            return Err(PyRuntimeError::new_err("the probe has already finished"));
        };
        let facts = Facts {
            tensors,
            sequences,
            samples: TensorSamples {
                plain: &plain,
                large,
                others,
                wrapper,
            },
        };
        let observer = probe.finish(&facts).map_err(Error::from)?;
        Ok(observer.reads_tensors())
    }
}

/// Checks that torch reports allocations, by observing the `bytes` that `allocate` allocates.
#[pyfunction]
pub(crate) fn check_torch_memory(bytes: i64, allocate: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut allocated = Ok(());
    let check = || allocated = allocate.call0().map(|_| ());
    let checked = observer()?.check_memory(bytes, check).map_err(Error::from);
    allocated?;
    Ok(checked?)
}

/// Returns whether the observer is attached to torch for a session of this process.
#[pyfunction]
pub(crate) fn is_observing_torch() -> bool {
    Observer::is_attached()
}

/// Returns whether forks hold torch's lock of callbacks, so that a child can run operators.
#[pyfunction]
pub(crate) fn torch_forks_are_safe() -> bool {
    Observer::present().is_some_and(Observer::protects_forks)
}

/// Returns the number of ranges that torch has reported to the observer on this thread.
#[pyfunction]
pub(crate) fn torch_ranges_heard() -> u64 {
    Observer::texts_heard()
}

/// Calls a function of torch that begins a range, which is not recorded.
#[pyfunction]
pub(crate) fn torch_begin_unrecorded<'py>(
    begin: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    Observer::unrecorded(|| begin.call0())
}

/// Returns the observer that a probe has built.
///
/// # Errors
/// If torch was not probed successfully.
pub(crate) fn observer() -> PyResult<&'static Observer> {
    let missing = || PyRuntimeError::new_err("torch has not been probed");
    Observer::present().ok_or_else(missing)
}
