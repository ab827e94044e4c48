//! `DeviceRecords`: the records of CUDA devices that are taken from CUPTI.
//!
//! The Python side creates one after it has started Kineto, and passes it to the session that stops.

use std::mem;
use std::sync::{Mutex, PoisonError};

use mindprof_pytorch::{
    DeviceCollection, DeviceRecords as Records, Error as PytorchError, KeepRecords, Recorder,
    detach, other_threads_launch_graphs,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::enter::Enter;

/// Returns whether torch's own collector is prepared or collecting for anybody in this process, as far
/// as torch tells.
#[pyfunction]
pub(crate) fn kineto_is_active() -> bool {
    mindprof_pytorch::kineto_is_active().unwrap_or(false)
}

/// The records of CUDA devices, from construction until `end()`.
///
/// Dropping it discards the records.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct DeviceRecords {
    state: Mutex<State>,
}

enum State {
    Open(DeviceCollection),
    Ended(Records),
    /// A profile has them.
    Taken,
}

#[pymethods]
impl DeviceRecords {
    /// Returns whether CUPTI can record without Kineto.
    #[staticmethod]
    fn can_record_alone(py: Python<'_>) -> bool {
        py.detach(Recorder::own_is_available)
    }

    /// Returns whether threads launch graphs, other than those that end collections.
    #[staticmethod]
    fn other_threads_launch_graphs() -> bool {
        other_threads_launch_graphs()
    }

    /// Has CUPTI record if `is_alone`, detached from its subscriber, or else takes over the records
    /// of a collection that Kineto has just started. At most `budget_bytes` of them are kept: the
    /// last ones if `keeps_last`, else the first.
    #[new]
    fn new(
        py: Python<'_>,
        budget_bytes: usize,
        keeps_last: bool,
        is_alone: bool,
    ) -> PyResult<Self> {
        let recorder = if is_alone {
            Recorder::Own
        } else {
            Recorder::Kineto
        };
        let keep = if keeps_last {
            KeepRecords::Last
        } else {
            KeepRecords::First
        };
        let collection = py.enter(|| DeviceCollection::begin(recorder, budget_bytes, keep))?;
        Ok(Self {
            state: Mutex::new(State::Open(collection)),
        })
    }

    /// Goes on after a pause. If Kineto records, it has started its kinds of records again before.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, DeviceCollection::resume)
    }

    /// Takes all records that CUPTI has so far, and stops recording unless Kineto does it.
    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, DeviceCollection::pause)
    }

    /// Takes the last records. Kineto may stop afterwards.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, DeviceCollection::stop)
    }

    /// Detaches CUPTI from the process, after the records were read, if its version can be attached
    /// again. Records that were not read are discarded.
    fn detach(&self, py: Python<'_>) -> PyResult<()> {
        py.enter(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            drop(mem::replace(&mut *state, State::Taken));
            detach()
        })
    }

    /// Ends the collection, after Kineto has stopped.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        py.enter(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            *state = match mem::replace(&mut *state, State::Taken) {
                State::Open(collection) => State::Ended(collection.end()),
                other => other,
            };
            Ok::<_, PytorchError>(())
        })
    }
}

impl DeviceRecords {
    /// Runs a step of an open collection.
    fn with(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&DeviceCollection) -> Result<(), PytorchError> + Send,
    ) -> PyResult<()> {
        py.enter(|| {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match &*state {
                State::Open(collection) => step(collection),
                State::Ended(_) | State::Taken => Ok(()),
            }
        })
    }

    /// Returns the records of a collection that has ended.
    ///
    /// # Errors
    /// If it has not ended, or if they were taken before.
    pub(crate) fn take(&self) -> PyResult<Records> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *state, State::Taken) {
            State::Ended(records) => Ok(records),
            other => {
                *state = other;
                Err(PyRuntimeError::new_err("the records have not ended"))
            }
        }
    }
}
