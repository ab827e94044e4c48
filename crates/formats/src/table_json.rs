//! The rows of a table as JSON, under torch's names.

use mindprof_analyze::{Analysis, Averages, GroupBy};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::info::loss_counts;
use crate::table::{shown_rows, total};
use crate::{Row, TableOptions, add_percentiles, average_rows};

/// Returns averages as JSON: the rows that a table with these options shows, and its totals. Times
/// are microseconds.
///
/// # Panics
/// Never: names are text and numbers are finite.
pub fn table_json(
    analysis: &Analysis,
    averages: &Averages,
    group_by: GroupBy,
    options: &TableOptions,
) -> String {
    let mut rows = average_rows(analysis, averages, group_by);
    if options.percentiles {
        add_percentiles(&mut rows, analysis, group_by);
    }
    let work = rows.iter().filter(|row| row.is_device_work);
    let document = Document {
        self_cpu_time_total: total(rows.iter().map(|row| row.self_cpu)),
        self_device_time_total: total(work.map(|row| row.self_device)),
        lost: loss_counts(analysis.profile().loss()),
        rows: shown_rows(&rows, options)
            .into_iter()
            .map(RowDocument::of)
            .collect(),
    };
    serde_json::to_string_pretty(&document).expect("plain data is JSON")
}

#[derive(Serialize)]
struct Document<'a> {
    rows: Vec<RowDocument<'a>>,
    self_cpu_time_total: f64,
    self_device_time_total: f64,
    lost: Map<String, Value>,
}

#[derive(Serialize)]
struct RowDocument<'a> {
    key: &'a str,
    count: i64,
    self_cpu_time_total: f64,
    cpu_time_total: f64,
    cpu_time: f64,
    self_device_time_total: f64,
    device_time_total: f64,
    device_time: f64,
    self_cpu_memory_usage: i64,
    cpu_memory_usage: i64,
    self_device_memory_usage: i64,
    device_memory_usage: i64,
    flops: Option<f64>,
    input_shapes: Option<&'a str>,
    stack: Vec<&'a str>,
    is_top_level: bool,
    /// p50, p90, p99 and the longest of the times on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    percentiles: Option<[f64; 4]>,
}

impl<'a> RowDocument<'a> {
    fn of(row: &'a Row<'_>) -> Self {
        let spread = row.percentiles.as_ref();
        Self {
            key: &row.name,
            count: row.count,
            self_cpu_time_total: row.self_cpu,
            cpu_time_total: row.cpu_total,
            cpu_time: row.mean(row.cpu_total),
            self_device_time_total: row.self_device,
            device_time_total: row.device_total,
            device_time: row.mean(row.device_total),
            self_cpu_memory_usage: row.self_cpu_memory,
            cpu_memory_usage: row.cpu_memory,
            self_device_memory_usage: row.self_device_memory,
            device_memory_usage: row.device_memory,
            flops: row.flops,
            input_shapes: row.shapes.as_deref(),
            stack: row.stack.iter().map(AsRef::as_ref).collect(),
            is_top_level: !row.has_parent,
            percentiles: spread.map(|found| {
                [found.p50, found.p90, found.p99, found.max].map(|t| t.0 as f64 / 1e3)
            }),
        }
    }
}
