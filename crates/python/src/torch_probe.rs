//! The probe of a running torch, as Python holds it: Python runs the operators that it listens to.

use std::sync::{Mutex, PoisonError};

use mindprof_pytorch::{Facts, Observer, Probe, Symbols, TensorSamples};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::Error;

/// Listens to the operators of this thread from its construction until `finish()`.
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

    /// Makes the observer, given the addresses of the two tensors, the sequence numbers of the two
    /// nodes, and the addresses of plain tensors, of a large one, and of four other ones. Returns
    /// whether tensors are read in place.
    fn finish(
        &self,
        tensors: [u64; 2],
        sequences: [u64; 2],
        plain: Vec<u64>,
        large: u64,
        others: [u64; 4],
    ) -> PyResult<bool> {
        let probe = self
            .probe
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(probe) = probe else {
            return Err(PyRuntimeError::new_err("the probe has finished"));
        };
        let facts = Facts {
            tensors,
            sequences,
            samples: TensorSamples {
                plain: &plain,
                large,
                others,
            },
        };
        let observer = probe.finish(&facts).map_err(Error::from)?;
        Ok(observer.reads_tensors())
    }
}

/// Checks that torch tells of memory, with an allocation of so many bytes that `allocate` makes.
#[pyfunction]
pub(crate) fn check_torch_memory(bytes: i64, allocate: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut allocated = Ok(());
    let check = || allocated = allocate.call0().map(|_| ());
    let checked = observer()?.check_memory(bytes, check).map_err(Error::from);
    allocated?;
    Ok(checked?)
}

/// Returns how many ranges torch has told the observer of on this thread.
#[pyfunction]
pub(crate) fn torch_ranges_heard() -> u64 {
    Observer::texts_heard()
}

/// Returns the observer that a probe made.
pub(crate) fn observer() -> PyResult<&'static Observer> {
    let missing = || PyRuntimeError::new_err("torch was not probed");
    Observer::present().ok_or_else(missing)
}
