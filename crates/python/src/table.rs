//! Rows as the text of a table.

use mindprof_analyze::GroupBy;
use mindprof_formats::{SortBy, TableOptions, TimeUnit};
use pyo3::prelude::*;

use crate::averages::{FunctionEventAvg, analysis_of, collect};
use crate::enter::Enter;
use crate::error::Error;
use crate::profile::Profile;

/// Returns the table of `rows`, or a sentence if there are none.
#[pyfunction]
#[pyo3(signature = (rows, profile, *, sort_by, row_limit, max_src_column_width, max_name_column_width,
    max_shapes_column_width, header, top_level_events_only, time_unit))]
#[expect(
    clippy::too_many_arguments,
    reason = "torch's arguments, one by one, as Python passes them"
)]
pub(crate) fn table(
    py: Python<'_>,
    rows: Vec<PyRef<'_, FunctionEventAvg>>,
    profile: Option<PyRef<'_, Profile>>,
    sort_by: Option<&str>,
    row_limit: i64,
    max_src_column_width: Option<usize>,
    max_name_column_width: Option<usize>,
    max_shapes_column_width: Option<usize>,
    header: Option<String>,
    top_level_events_only: bool,
    time_unit: Option<&str>,
) -> PyResult<String> {
    let analysis = profile.map_or_else(|| analysis_of(&rows), |of| Some(of.analysis().clone()));
    let Some(analysis) = analysis else {
        return Ok(mindprof_formats::NO_EVENTS.into());
    };
    let averages = collect(&rows);
    py.enter(|| {
        let options = TableOptions {
            sort_by: sort_by.map(str::parse::<SortBy>).transpose()?,
            // Below zero there is no limit, as in torch.
            row_limit: usize::try_from(row_limit).ok(),
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
            // torch passes over what it does not know.
            time_unit: time_unit.and_then(|unit| unit.parse::<TimeUnit>().ok()),
            percentiles: false,
        };
        Ok::<_, Error>(mindprof_formats::table(
            &analysis,
            &averages,
            GroupBy::default(),
            &options,
        ))
    })
}
