//! The arguments of collectives, which torch describes in every recording.
//!
//! The observer keeps them with the event, as a reader of trace files does; other arguments of the
//! event are not torch's metadata.

use mindprof_model::{Category, PassthroughKind};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use super::FunctionEvent;

/// The operator that describes a collective.
pub(super) const COLLECTIVE: &str = "record_param_comms";

/// torch's names of the arguments.
const ARGUMENTS: [&str; 18] = [
    "Collective name",
    "dtype",
    "In msg nelems",
    "Out msg nelems",
    "In split size",
    "Out split size",
    "Global rank start",
    "Global rank stride",
    "Group size",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
    "Rank",
    "Src Rank",
    "Dst Rank",
    "Seq",
    "Comms Id",
    "Is asynchronized op",
];

#[pymethods]
impl FunctionEvent {
    /// The arguments of a collective as typed values; `None` for other events, as in torch unless
    /// it keeps all metadata.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.collective_arguments(py)
    }

    /// The same as torch's former class.
    #[getter(_event_metadata)]
    fn event_metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(texts) = self.collective_texts(py)? else {
            return Ok(None);
        };
        let records = py.import("mindprof._results.records")?;
        records.call_method1("metadata_of", (texts,)).map(Some)
    }
}

impl FunctionEvent {
    /// Returns the arguments of a collective as typed values, or `None` if none were recorded.
    pub(super) fn collective_arguments<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(text) = self.collective_text() else {
            return Ok(None);
        };
        let json = py.import("json")?;
        let all = json.call_method1("loads", (format!("{{{text}}}"),))?;
        let told = PyDict::new(py);
        for name in ARGUMENTS {
            if let Ok(value) = all.get_item(name) {
                told.set_item(name, value)?;
            }
        }
        Ok(Some(told).filter(|told| !told.is_empty()))
    }

    /// Returns the arguments of a collective as torch's texts, or `None` if none were recorded.
    pub(super) fn collective_texts<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(told) = self.collective_arguments(py)? else {
            return Ok(None);
        };
        let texts = PyDict::new(py);
        for (name, value) in &told {
            let text = if value.is_instance_of::<PyString>() {
                format!("\"{value}\"")
            } else if let Ok(truth) = value.cast::<PyBool>() {
                truth.is_true().to_string()
            } else {
                value.to_string()
            };
            texts.set_item(name, text)?;
        }
        Ok(Some(texts))
    }

    fn collective_text(&self) -> Option<String> {
        let (id, event) = self.event()?;
        let profile = self.analysis().profile();
        let is_collective = event.category == Category::Operator
            && profile.strings().text(event.name) == COLLECTIVE;
        let passthrough = profile.passthrough();
        let text = is_collective.then(|| passthrough.of(PassthroughKind::Arguments, id.index()))?;
        Some(passthrough.texts.text(text?))
    }
}
