//! Rows of averages for Python, with torch's names, in microseconds.

use std::sync::{Arc, OnceLock};

use mindprof_analyze::{
    Amounts, Average, GroupBy, Item, Metric, Percentiles, Unit, averages_of, uncounted,
};
use mindprof_answers::WorkRows;
use mindprof_formats::{average_columns, average_rows};
use mindprof_model::Nanos;
use mindprof_report::table;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::analyzed::{Analyzed, Facts};
use crate::arrow::ArrowTable;
use crate::enter::Enter;
use crate::error::Error;
use crate::events::Events;
use crate::inputs::shapes;
use crate::names::{device_name, device_type};
use crate::table::TableArguments;

pub(crate) use mindprof_analyze::{microseconds, nanoseconds as nanos};

/// The rows of one grouping. A row becomes a Python object only when it is accessed.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct Averages {
    analyzed: Arc<Analyzed>,
    group_by: GroupBy,
    rows: Arc<WorkRows>,
    spread: OnceLock<Vec<Percentiles>>,
}

impl Averages {
    pub(crate) fn new(analyzed: Arc<Analyzed>, group_by: GroupBy) -> Self {
        let group_by = analyzed.grouping(group_by);
        let analyzed = analyzed.view(group_by);
        let rows = analyzed.rows(group_by);
        Self {
            analyzed,
            group_by,
            rows,
            spread: OnceLock::new(),
        }
    }

    /// Builds the rows of the operators that have no FLOP formula.
    pub(crate) fn uncounted(analyzed: Arc<Analyzed>) -> Self {
        let analysis = &analyzed.analysis;
        let missing = uncounted(analysis.profile(), analysis.tree());
        let items = missing.into_iter().map(Item::Event);
        let rows = Arc::new(WorkRows {
            averages: averages_of(analysis, items, GroupBy::default()),
            ..WorkRows::default()
        });
        Self {
            // Percentiles of these rows are never requested.
            spread: OnceLock::from(vec![Percentiles::default(); rows.averages.rows.len()]),
            analyzed,
            group_by: GroupBy::default(),
            rows,
        }
    }
}

#[pymethods]
impl Averages {
    fn __len__(&self) -> usize {
        self.rows.averages.rows.len()
    }

    /// Returns the attributes of rows `begin` to `end`.
    fn make<'py>(
        slf: &Bound<'py, Self>,
        begin: usize,
        end: usize,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let this = slf.get();
        let analysis = &this.analyzed.analysis;
        let texts = average_rows(analysis, &this.rows.averages, this.group_by);
        let events = Py::new(slf.py(), Events::new(Arc::clone(&this.analyzed)))?;
        let rows = this.rows.averages.rows.iter().zip(&texts).enumerate();
        rows.take(end)
            .skip(begin)
            .map(|(index, (row, text))| {
                let dict = this.attributes(slf.py(), row, &events)?;
                let frames: Vec<&str> = text.stack.iter().map(AsRef::as_ref).collect();
                dict.set_item("stack", frames)?;
                dict.set_item("_spread", (slf, index))?;
                Ok(dict)
            })
            .collect()
    }

    /// Returns the attributes of a row that sums all others.
    fn total<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        amounts_dict(py, &self.rows.averages.total().sums.into())
    }

    /// Returns the sum of all self CPU times, in microseconds.
    fn self_cpu_time_total(&self) -> f64 {
        microseconds(self.rows.averages.self_cpu_total())
    }

    /// Returns p50, p90, p99 and the maximum of the times of a row, in microseconds.
    fn percentiles(&self, index: usize) -> Option<[f64; 4]> {
        let make = || {
            let averages = &self.rows.averages;
            averages.percentiles(&self.analyzed.analysis, self.group_by)
        };
        let found = self.spread.get_or_init(make).get(index)?;
        Some([found.p50, found.p90, found.p99, found.max].map(microseconds))
    }

    /// Returns the rows as a table.
    fn table(&self, py: Python<'_>, arguments: TableArguments) -> PyResult<String> {
        py.enter(|| {
            let options = arguments.options()?;
            let analysis = &self.analyzed.analysis;
            Ok::<_, Error>(table(
                analysis,
                &self.rows.averages,
                self.group_by,
                &options,
            ))
        })
    }

    /// Returns the rows as columns.
    fn arrow(&self, py: Python<'_>) -> PyResult<ArrowTable> {
        py.enter(|| {
            let columns =
                average_columns(&self.analyzed.analysis, &self.rows.averages, self.group_by);
            Ok::<_, Error>(ArrowTable::new(columns))
        })
    }

    /// Returns the facts that hold for all rows.
    fn facts(&self) -> Facts {
        self.analyzed.facts()
    }

    /// Returns the number of lost events by cause.
    fn loss(&self) -> Vec<u64> {
        self.analyzed.loss()
    }

    /// Returns the words that limit the recorded operators; empty if all were recorded.
    fn only(&self) -> Vec<String> {
        self.analyzed.only()
    }
}

impl Averages {
    fn attributes<'py>(
        &self,
        py: Python<'py>,
        row: &Average,
        events: &Py<Events>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let analysis = &self.analyzed.analysis;
        let dict = amounts_dict(py, &row.sums.into())?;
        dict.set_item("key", &row.key)?;
        dict.set_item("node_id", -1)?;
        dict.set_item("is_async", row.is_async)?;
        dict.set_item("is_remote", false)?;
        dict.set_item("is_legacy", false)?;
        dict.set_item("is_user_annotation", row.is_annotation())?;
        dict.set_item("use_device", analysis.accelerator().map(device_name))?;
        dict.set_item("device_type", device_type(py, row.device)?)?;
        dict.set_item("overload_name", "")?;
        dict.set_item("scope", crate::names::scope_number(row.scope))?;
        match row.inputs {
            Some(inputs) => {
                let inputs = analysis.profile().inputs().inputs(inputs);
                dict.set_item("input_shapes", shapes(py, inputs)?)?;
            }
            None => dict.set_item("input_shapes", "")?,
        }
        let first = match row.first {
            Some(first) => Some(Events::handle(events, py, Item::Event(first))?),
            None => None,
        };
        dict.set_item("_first", first)?;
        Ok(dict)
    }
}

/// Returns p50, p90, p99 and the maximum of times in microseconds.
#[pyfunction]
pub(crate) fn percentiles_of(times: Vec<f64>) -> [f64; 4] {
    let mut times: Vec<Nanos> = times.into_iter().map(nanos).collect();
    let found = Percentiles::of(&mut times);
    [found.p50, found.p90, found.p99, found.max].map(microseconds)
}

/// Returns the names of the percentiles beyond the median that say something about `count` times.
#[pyfunction]
pub(crate) fn told_percentiles(count: usize) -> Vec<&'static str> {
    let told = Percentiles::default().told(count);
    told.map(|(name, _)| name).collect()
}

/// Returns a dict of amounts by torch's names.
pub(crate) fn amounts_dict<'py>(
    py: Python<'py>,
    amounts: &Amounts,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for metric in Metric::SUMS {
        match metric.unit() {
            Unit::Micros => dict.set_item(metric.name(), amounts[metric].float())?,
            Unit::Bytes | Unit::Operations | Unit::Events => {
                dict.set_item(metric.name(), amounts[metric].whole())?;
            }
        }
    }
    Ok(dict)
}

/// Returns torch's names of the additive metrics, with their number types.
#[pyfunction]
pub(crate) fn metrics() -> Vec<(&'static str, &'static str)> {
    let kind = |metric: Metric| match metric.unit() {
        Unit::Micros => "float",
        Unit::Bytes | Unit::Operations | Unit::Events => "int",
    };
    Metric::SUMS
        .map(|metric| (metric.name(), kind(metric)))
        .to_vec()
}

/// Returns a Python list of strings.
pub(crate) fn text_list<'py, 'a>(
    py: Python<'py>,
    texts: impl Iterator<Item = &'a str>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for text in texts {
        list.append(text)?;
    }
    Ok(list)
}
