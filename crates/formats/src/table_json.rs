//! The rows of a table as a JSON document, with torch's names of metrics as keys.

use std::collections::BTreeMap;

use mindprof_analyze::{Metric, Unit, microseconds};
use mindprof_model::{OperatorLimit, Profile};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::info::loss_counts;
use crate::row::{Row, RowOptions, self_totals};

/// Returns the rows that a table with these options shows, and its totals, as JSON. Times are
/// microseconds. Rows that are estimates have `margins`.
///
/// `left_out` are rows that are not part of the table, such as the imports of a run. They are listed
/// separately and are not part of the totals.
///
/// # Panics
/// Never: names are text and numbers are finite.
pub fn table_json(
    rows: &[Row<'_>],
    left_out: &[Row<'_>],
    profile: &Profile,
    options: &RowOptions,
) -> String {
    let document = Document {
        rows: options.shown(rows).into_iter().map(RowDocument).collect(),
        row_count: rows.len(),
        left_out: left_out.iter().map(RowDocument).collect(),
        totals: self_totals(rows),
        lost: loss_counts(profile.loss()),
        only: OperatorLimit::read(profile.metadata()).map(|limit| limit.words()),
    };
    serde_json::to_string_pretty(&document).expect("plain data is JSON")
}

struct Document<'a> {
    rows: Vec<RowDocument<'a>>,
    /// The number of rows, including those that are not shown.
    row_count: usize,
    left_out: Vec<RowDocument<'a>>,
    /// The self times on the CPU and on devices.
    totals: (f64, f64),
    lost: Map<String, Value>,
    /// The words that limit the recorded operators.
    only: Option<Vec<String>>,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (cpu, device) = self.totals;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("rows", &self.rows)?;
        map.serialize_entry("row_count", &self.row_count)?;
        map.serialize_entry("left_out", &self.left_out)?;
        map.serialize_entry(Metric::SelfCpuTimeTotal.name(), &cpu)?;
        map.serialize_entry(Metric::SelfDeviceTimeTotal.name(), &device)?;
        map.serialize_entry("lost", &self.lost)?;
        if let Some(only) = &self.only {
            map.serialize_entry("only", only)?;
        }
        map.end()
    }
}

struct RowDocument<'a>(&'a Row<'a>);

impl Serialize for RowDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &row.name)?;
        map.serialize_entry(Metric::Count.name(), &row.amounts[Metric::Count].whole())?;
        for metric in Metric::ALL {
            let amount = row.amounts[metric];
            match metric.unit() {
                Unit::Events => {}
                Unit::Bytes => map.serialize_entry(metric.name(), &amount.whole())?,
                Unit::Micros | Unit::Operations => {
                    map.serialize_entry(metric.name(), &amount.float())?;
                }
            }
        }
        map.serialize_entry("input_shapes", &row.shapes.as_deref())?;
        map.serialize_entry("stack", &*row.stack)?;
        map.serialize_entry("is_top_level", &!row.has_parent)?;
        if let Some(found) = row.percentiles {
            let times = [found.p50, found.p90, found.p99, found.max];
            map.serialize_entry("percentiles", &times.map(microseconds))?;
        }
        if let Some(margin) = row.margin {
            let times = [
                (Metric::CpuTimeTotal, margin.cpu_total),
                (Metric::SelfCpuTimeTotal, margin.self_cpu_total),
            ];
            let times = times.map(|(metric, time)| (metric.name(), microseconds(time)));
            let all = [(Metric::Count.name(), margin.count)]
                .into_iter()
                .chain(times);
            map.serialize_entry("margins", &all.collect::<BTreeMap<_, _>>())?;
        }
        map.end()
    }
}
