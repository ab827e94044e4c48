//! The inputs of an event and the stack it was called from.

use mindprof_analyze::shown_frames;
use mindprof_model::{StackId, StringId};
use mindprof_trace::input_types;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::FunctionEvent;
use crate::averages::text_list;
use crate::inputs::{Part, keywords, shapes, structured, values};

#[pymethods]
impl FunctionEvent {
    #[getter]
    pub(super) fn input_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        shapes(py, self.inputs())
    }

    /// `None` for a memory record, as in torch; the same holds for the other inputs.
    #[getter(structured_input_shapes)]
    fn shown_shapes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let shapes = self.recorded().map(|_| self.structured_input_shapes(py));
        shapes.transpose()
    }

    #[getter(structured_input_strides)]
    fn shown_strides<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let strides = self.recorded().map(|_| self.structured_input_strides(py));
        strides.transpose()
    }

    #[getter(input_dtypes)]
    fn shown_dtypes(&self) -> Option<Vec<&'static str>> {
        self.recorded().map(|_| self.input_dtypes())
    }

    #[getter(concrete_inputs)]
    fn shown_values<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let values = self.recorded().map(|_| self.concrete_inputs(py));
        values.transpose()
    }

    #[getter(kwinputs)]
    fn shown_keywords<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.recorded().map(|_| self.kwinputs(py)).transpose()
    }

    #[getter]
    pub(super) fn stack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let strings = self.analysis().profile().strings();
        text_list(py, self.shown_frames().map(|frame| strings.text(frame)))
    }
}

impl FunctionEvent {
    pub(super) fn structured_input_shapes<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        structured(py, self.inputs(), Part::Dims)
    }

    pub(super) fn structured_input_strides<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        structured(py, self.inputs(), Part::Strides)
    }

    pub(super) fn input_dtypes(&self) -> Vec<&'static str> {
        input_types(self.inputs())
    }

    pub(super) fn concrete_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        values(py, self.inputs())
    }

    pub(super) fn kwinputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        keywords(py, self.inputs())
    }

    /// Iterates over the shown frames of the event's stack, innermost first.
    pub(super) fn shown_frames(&self) -> impl Iterator<Item = StringId> {
        let stack = self
            .event()
            .map_or(StackId::NONE, |(id, _)| self.analysis().stack(id));
        shown_frames(self.analysis().profile(), stack)
    }
}
