//! How Python asks for a table.

use mindprof_formats::{Result, RowOptions, SortBy};
use mindprof_model::{Loss, LossCause};
use mindprof_report::{TableFacts, TableOptions, TimeUnit};
use pyo3::prelude::*;

use crate::from_dict::from_dict;

from_dict! {
    /// torch's arguments of `table()`, and ours, as a dict.
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
                // Below zero there is no limit, as in torch.
                row_limit: usize::try_from(self.row_limit).ok(),
                top_level_events_only: self.top_level_events_only,
                percentiles: self.percentiles,
                ..RowOptions::default()
            },
            max_src_column_width: width(self.max_src_column_width),
            max_name_column_width: width(self.max_name_column_width),
            max_shapes_column_width: width(self.max_shapes_column_width),
            header: self.header,
            // torch passes over what it does not know.
            time_unit: self
                .time_unit
                .and_then(|unit| unit.parse::<TimeUnit>().ok()),
            columns: None,
            max_width: width(self.max_width).filter(|&width| width > 0),
        })
    }
}

from_dict! {
    /// What holds for all rows of a list, as a dict.
    pub(crate) struct ListFacts {
        use_device: Option<String>,
        profile_memory: bool,
        with_flops: bool,
        /// How many events are missing, by cause.
        loss: Vec<u64>,
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
        }
    }
}

/// Returns the names that tables of recorded events can be sorted by without looking at each.
#[pyfunction]
pub(crate) fn sort_keys() -> Vec<&'static str> {
    SortBy::all().map(SortBy::name).collect()
}
