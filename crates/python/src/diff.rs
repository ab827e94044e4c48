//! The comparison of two profiles, for Python.

use mindprof_analyze::Sums;
use mindprof_answers::{
    Change, Diff as Difference, DiffOptions, Doubt, FailOn, Incomplete, Limit, Measure, Verdict,
    Whole,
};
use mindprof_formats::{change_state, diff_json, measure_name};
use mindprof_model::DeviceKind;
use mindprof_report::{DiffLayout, diff_text, doubt_text, verdict_text};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::averages::microseconds;
use crate::enter::Enter;
use crate::error::Error;
use crate::names::device_name;
use crate::profile::Profile;

/// A verdict: the outcome, a sentence about it, the judged growth, and doubts.
type Judged = (&'static str, String, Option<f64>, Vec<String>);

/// The changes between two profiles. A row becomes a Python object only when it is accessed.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct Diff {
    diff: Difference,
    /// The names of the two profiles in sentences.
    names: [String; 2],
}

/// Compares two profiles. `names` are those of the profiles in sentences about them.
#[pyfunction]
#[pyo3(signature = (before, after, *, by_shapes, include_python_functions, measure, names))]
pub(crate) fn diff_profiles(
    py: Python<'_>,
    before: PyRef<'_, Profile>,
    after: PyRef<'_, Profile>,
    by_shapes: bool,
    include_python_functions: bool,
    measure: &str,
    names: [String; 2],
) -> PyResult<Diff> {
    let measures = [Measure::SelfTime, Measure::TotalTime, Measure::Count];
    let found = measures
        .into_iter()
        .find(|&known| measure_name(known) == measure);
    let Some(measure) = found else {
        let known = measures.map(measure_name).join(", ");
        let message = format!("measure should be one of: {known}, got {measure:?}");
        return Err(PyValueError::new_err(message));
    };
    let options = DiffOptions {
        label: None,
        input_shapes: by_shapes,
        python_functions: include_python_functions,
        measure,
    };
    let (before, after) = (&*before, &*after);
    py.enter(move || {
        let (before, after) = (before.analyzed(), after.analyzed());
        let diff = Difference::build(&before.analysis, &after.analysis, options);
        Ok::<_, Error>(Diff { diff, names })
    })
}

#[pymethods]
impl Diff {
    fn __len__(&self) -> usize {
        self.diff.rows.len()
    }

    /// Returns the attributes of all rows, the largest change first.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows = self.diff.rows.iter();
        rows.map(|row| self.attributes(py, row)).collect()
    }

    /// Returns the position of the row that grew most, or `None` if no row grew.
    fn worst(&self) -> Option<usize> {
        let worst = self.diff.worst()?;
        self.diff
            .rows
            .iter()
            .position(|row| std::ptr::eq(row, worst))
    }

    /// Returns sentences about facts that make the comparison unfair, such as lost events.
    fn notes(&self) -> Vec<String> {
        let names = self.names.each_ref().map(String::as_str);
        let notes = Doubt::notes(&self.diff).into_iter();
        notes.map(|note| doubt_text(note, names)).collect()
    }

    /// Returns the relative growth of the total.
    fn growth(&self) -> f64 {
        self.diff.growth()
    }

    /// Judges the growth against a limit. Returns the outcome (`within`, `exceeded` or `refused`),
    /// a sentence about it, the judged growth, which is None if the comparison is refused, and
    /// sentences about differences other than speed.
    fn verdict(&self, share: f64, fail_on: &str, allow_incomplete: bool) -> PyResult<Judged> {
        let fail_on = match fail_on {
            "total" => FailOn::Total,
            "row" => FailOn::Row,
            other => {
                let message = format!("fail_on should be one of: total, row, got {other:?}");
                return Err(PyValueError::new_err(message));
            }
        };
        let incomplete = if allow_incomplete {
            Incomplete::Accept
        } else {
            Incomplete::Refuse
        };
        let limit = Limit {
            share,
            fail_on,
            incomplete,
        };
        let verdict = Verdict::build(&self.diff, limit);
        let text = verdict_text(&verdict, limit);
        let doubts = || {
            let doubts = Doubt::build(&self.diff, limit).into_iter();
            let names = self.names.each_ref().map(String::as_str);
            doubts.map(|doubt| doubt_text(doubt, names)).collect()
        };
        Ok(match verdict {
            Verdict::Within { growth, .. } => ("within", text, Some(growth), doubts()),
            Verdict::Exceeded { growth, .. } => ("exceeded", text, Some(growth), doubts()),
            Verdict::Refused(refusal) => {
                let name = &self.names[usize::from(refusal.is_second())];
                let text = format!("{name} {text}");
                ("refused", text, None, Vec::new())
            }
        })
    }

    /// Returns whether both sides have equal counts and times.
    fn is_none(&self) -> bool {
        self.diff.is_none()
    }

    /// Returns whether rows are also grouped by input shapes.
    fn by_shapes(&self) -> bool {
        self.diff.by_shapes
    }

    /// Returns the totals of both sides.
    fn wholes<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        Ok((whole(py, &self.diff.before)?, whole(py, &self.diff.after)?))
    }

    /// Returns a table of the changed rows as text.
    fn table(
        &self,
        py: Python<'_>,
        row_limit: i64,
        max_name_column_width: Option<usize>,
        max_shapes_column_width: Option<usize>,
    ) -> PyResult<String> {
        let layout = DiffLayout {
            row_limit: usize::try_from(row_limit).ok(),
            max_name_column_width,
            max_shapes_column_width,
            max_width: None,
        };
        py.enter(|| Ok::<_, Error>(diff_text(&self.diff, &layout)))
    }

    /// Returns the whole difference as JSON.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.enter(|| Ok::<_, Error>(diff_json(&self.diff)))
    }
}

impl Diff {
    fn attributes<'py>(&self, py: Python<'py>, row: &Change) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("key", &row.key)?;
        dict.set_item("input_shapes", &row.shapes)?;
        dict.set_item("device", device_name(row.device))?;
        dict.set_item("is_user_annotation", row.is_annotation)?;
        dict.set_item("state", change_state(&self.diff, row))?;
        for (side, sums) in [("before", &row.before), ("after", &row.after)] {
            let (count, own, total) = sums.map_or((0, 0.0, 0.0), |sums| values(&sums, row.device));
            dict.set_item(format!("count_{side}"), count)?;
            dict.set_item(format!("self_time_{side}"), own)?;
            dict.set_item(format!("total_time_{side}"), total)?;
        }
        dict.set_item("growth", self.diff.row_growth(row))?;
        Ok(dict)
    }
}

/// Returns the count, and self and total time in microseconds, on the side (CPU or device) that the
/// events ran on.
fn values(sums: &Sums, device: DeviceKind) -> (u64, f64, f64) {
    let (own, total) = if device == DeviceKind::Cpu {
        (sums.self_cpu_total, sums.cpu_total)
    } else {
        (sums.self_device_total, sums.device_total)
    };
    (sums.count, microseconds(own), microseconds(total))
}

fn whole<'py>(py: Python<'py>, whole: &Whole) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("count", whole.count)?;
    dict.set_item("self_cpu_time", microseconds(whole.host))?;
    dict.set_item("self_device_time", microseconds(whole.device))?;
    dict.set_item("span", microseconds(whole.span))?;
    Ok(dict)
}
