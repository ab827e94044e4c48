//! An open window of the recorder, as Python holds it.

use std::sync::{Mutex, PoisonError};

use mindprof_record::{Options, Session as Window};
use pyo3::prelude::*;

use crate::profile::Profile;

/// Records from its construction until `stop()`.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct Session {
    window: Mutex<Option<Window>>,
    record_shapes: bool,
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (*, record_shapes, budget_bytes))]
    fn new(record_shapes: bool, budget_bytes: usize) -> Self {
        let options = Options {
            inputs: record_shapes,
            budget_bytes,
        };
        Self {
            window: Mutex::new(Some(Window::start(options))),
            record_shapes,
        }
    }

    /// Closes the window and returns what it holds; none if it was closed before.
    fn stop(&self) -> Option<Profile> {
        let window = self
            .window
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        let mut capture = window.stop();
        if self.record_shapes {
            capture.metadata.set("record_shapes", "1");
        }
        Some(Profile::from_capture(capture))
    }
}
