//! What an event was given, and who called it.

#![expect(
    clippy::unused_self,
    reason = "a getter takes it, also where it says the same of every event"
)]

use mindprof_analyze::shown_frames;
use mindprof_formats::input_types;
use mindprof_model::StackId;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::FunctionEvent;
use crate::averages::text_list;
use crate::inputs::{Part, shapes, structured, values};

#[pymethods]
impl FunctionEvent {
    #[getter]
    fn input_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        shapes(py, self.inputs())
    }

    #[getter]
    fn structured_input_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        structured(py, self.inputs(), Part::Dims)
    }

    #[getter]
    fn structured_input_strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        structured(py, self.inputs(), Part::Strides)
    }

    #[getter]
    fn input_dtypes(&self) -> Vec<&'static str> {
        input_types(self.inputs())
    }

    #[getter]
    fn concrete_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        values(py, self.inputs())
    }

    #[getter]
    fn kwinputs<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        PyDict::new(py)
    }

    #[getter]
    fn stack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let stack = self
            .event()
            .map_or(StackId::NONE, |(id, _)| self.analysis().stack(id));
        let profile = self.analysis().profile();
        let frames = shown_frames(profile, stack);
        text_list(py, frames.map(|frame| profile.strings().text(frame)))
    }
}
