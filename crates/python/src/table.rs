//! The arguments of `table()`, converted from Python to options of the report.

use mindprof_formats::{Result, RowOptions, SortBy};
use mindprof_model::{Loss, LossCause, OperatorLimit};
use mindprof_report::{TableFacts, TableOptions, TimeUnit};
use pyo3::prelude::*;

use crate::from_dict::from_dict;

from_dict! {
    /// torch's arguments of `table()` and mindprof's additions, as a dict.
    pub(crate) struct TableArguments {
        sort_by: Option<String>,
        row_limit: i64,
        max_src_column_width: Option<i64>,
        max_name_column_width: Option<i64>,
        max_shapes_column_width: Option<i64>,
        header: Option<String>,
        top_level_events_only: bool,
        time_unit: Option<String>,
        percentiles: bool,
        max_width: Option<i64>,
    }
}

impl TableArguments {
    pub(crate) fn options(self) -> Result<TableOptions> {
        let width = |width: Option<i64>| width.map(|width| usize::try_from(width).unwrap_or(0));
        Ok(TableOptions {
            rows: RowOptions {
                sort_by: self.sort_by.map(|key| key.parse::<SortBy>()).transpose()?,
                // Negative values mean no limit, as in torch.
                row_limit: usize::try_from(self.row_limit).ok(),
                top_level_events_only: self.top_level_events_only,
                percentiles: self.percentiles,
                ..RowOptions::default()
            },
            max_src_column_width: width(self.max_src_column_width),
            max_name_column_width: width(self.max_name_column_width),
            max_shapes_column_width: width(self.max_shapes_column_width),
            header: self.header,
            // Unknown units are ignored, as in torch.
            time_unit: self
                .time_unit
                .and_then(|unit| unit.parse::<TimeUnit>().ok()),
            columns: None,
            max_width: width(self.max_width).filter(|&width| width > 0),
            source_header: None,
        })
    }
}

from_dict! {
    /// The properties of a list that its table depends on, as a dict.
    pub(crate) struct ListFacts {
        use_device: Option<String>,
        profile_memory: bool,
        with_flops: bool,
        /// The number of lost events by cause, in the order of [`LossCause::ALL`].
        loss: Vec<u64>,
        /// The words that limit the recorded operators; empty if all were recorded.
        only: Vec<String>,
    }
}

impl From<ListFacts> for TableFacts {
    fn from(facts: ListFacts) -> Self {
        let device = facts.use_device.filter(|device| !device.is_empty());
        let mut loss = Loss::default();
        for (cause, count) in LossCause::ALL.into_iter().zip(facts.loss) {
            loss.add(cause, count);
        }
        Self {
            device: device.map(|device| device.to_uppercase()),
            memory: facts.profile_memory,
            flops: facts.with_flops,
            loss,
            limit: OperatorLimit::parse(facts.only.iter().map(String::as_str)).ok(),
        }
    }
}

/// Returns the sort keys of tables that the engine knows.
#[pyfunction]
pub(crate) fn sort_keys() -> Vec<&'static str> {
    SortBy::all().map(SortBy::name).collect()
}
