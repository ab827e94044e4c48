//! The columns of a table: their keys and headers, their cells, and the choice of those that fit.

use mindprof_analyze::{Metric, Percentiles, microseconds};
use mindprof_formats::{Row, SortBy};
use mindprof_model::Nanos;

use super::{SPACING, Sheet, capped};
use crate::grid::{characters, cut};
use crate::number::share_text;

/// One column of a table, with everything that the layout needs.
pub(super) struct Column {
    /// The key that selects it.
    pub(super) key: &'static str,
    pub(super) header: String,
    pub(super) width: usize,
    pub(super) cell: Box<Cell>,
    /// The function that formats a stack frame, in the column of source locations. This column is
    /// aligned to the left.
    pub(super) frame: Option<fn(&Sheet<'_>, &str) -> String>,
}

const NUMBER_WIDTH: usize = 12;
const FLOPS_UNITS: [&str; 6] = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"];

type Cell = dyn Fn(&Sheet<'_>, &Row<'_>) -> String;

fn column(
    key: &'static str,
    width: usize,
    cell: impl Fn(&Sheet<'_>, &Row<'_>) -> String + 'static,
) -> Column {
    Column {
        key,
        header: String::new(),
        width,
        cell: Box::new(cell),
        frame: None,
    }
}

fn number(key: &'static str, cell: impl Fn(&Sheet<'_>, &Row<'_>) -> String + 'static) -> Column {
    column(key, NUMBER_WIDTH, cell)
}

fn amounts(metric: Metric) -> Column {
    number(metric.name(), move |sheet, row| sheet.amount(row, metric))
}

/// The key that selects a column and the header that torch prints above it.
///
/// `{device}` in a header stands for the name of the device, `{unit}` for the unit of FLOPs.
struct Heading {
    key: &'static str,
    header: &'static str,
}

const fn heading(key: &'static str, header: &'static str) -> Heading {
    Heading { key, header }
}

const fn of_metric(metric: Metric, header: &'static str) -> Heading {
    heading(metric.name(), header)
}

/// Every column that a table can have, the most important first.
///
/// This is the only list of keys and headers. [`columns`] puts the columns next to each other in
/// torch's order, and [`fitting`] drops them from the end of this list when the table is too wide.
const HEADINGS: [Heading; 25] = [
    heading("name", "Name"),
    of_metric(Metric::SelfDeviceTimeTotal, "Self {device}"),
    heading("input_shapes", "Input Shapes"),
    heading("stack", "Source Location"),
    of_metric(Metric::SelfCpuTimeTotal, "Self CPU"),
    heading("margin", "Self CPU ±"),
    of_metric(Metric::Count, "# of Calls"),
    heading("max", "CPU max"),
    heading("p50", "CPU p50"),
    heading("self_device_percent", "Self {device} %"),
    heading("self_cpu_percent", "Self CPU %"),
    of_metric(Metric::CpuTimeTotal, "CPU total"),
    of_metric(Metric::DeviceTimeTotal, "{device} total"),
    heading("p99", "CPU p99"),
    heading("p90", "CPU p90"),
    of_metric(Metric::DeviceTime, "{device} time avg"),
    of_metric(Metric::CpuTime, "CPU time avg"),
    of_metric(Metric::SelfDeviceMemoryUsage, "Self {device} Mem"),
    of_metric(Metric::SelfCpuMemoryUsage, "Self CPU Mem"),
    of_metric(Metric::Flops, "Total {unit}"),
    heading("overload", "Overload Name"),
    heading("cpu_percent", "CPU total %"),
    of_metric(Metric::DeviceMemoryUsage, "{device} Mem"),
    of_metric(Metric::CpuMemoryUsage, "CPU Mem"),
    heading("node", "Node ID"),
];

/// The keys that select columns in [`TableOptions::columns`](super::TableOptions::columns), the most
/// important column first. Metrics have torch's names, as sort keys do. If a table is too wide, the
/// columns at the end of this list are dropped first.
pub const TABLE_COLUMNS: [&str; HEADINGS.len()] = {
    let mut keys = [""; HEADINGS.len()];
    let mut index = 0;
    while index < keys.len() {
        keys[index] = HEADINGS[index].key;
        index += 1;
    }
    keys
};

/// Returns the header of a column.
fn header(sheet: &Sheet<'_>, key: &str) -> String {
    let found = HEADINGS.iter().find(|heading| heading.key == key);
    let header = found.expect("every column has a heading").header;
    let device = sheet.facts.device.as_deref().unwrap_or_default();
    let unit = FLOPS_UNITS[sheet.flops_unit.unwrap_or(0)];
    header.replace("{unit}", unit).replace("{device}", device)
}

/// The minimum width of the column of names. Other columns are dropped before it gets narrower.
const LEAST_NAME_WIDTH: usize = 20;

/// Returns the columns to show: the requested ones in the requested order, or those that fit.
pub(super) fn shown_columns(sheet: &Sheet<'_>) -> Vec<Column> {
    let mut all = columns(sheet);
    if let Some(keys) = &sheet.options.columns {
        let mut picked = Vec::new();
        for key in keys {
            let found = all.iter().position(|column| column.key == *key);
            picked.extend(found.map(|index| all.remove(index)));
        }
        // A table has at least one column, even if the rows have values for none of those requested.
        if picked.is_empty() {
            all.truncate(1);
        } else {
            all = picked;
        }
    }
    match sheet.options.max_width {
        Some(width) => fitting(sheet, all, width),
        None => all,
    }
}

/// Narrows columns to their contents, then drops the least important ones until the table fits.
/// Columns that the user requested are kept. Names take the remaining width.
fn fitting(sheet: &Sheet<'_>, mut columns: Vec<Column>, width: usize) -> Vec<Column> {
    let rows = sheet.options.rows.shown(sheet.rows);
    for column in columns.iter_mut().filter(|column| column.key != "name") {
        let cells = rows
            .iter()
            .map(|row| characters(&(column.cell)(sheet, row)));
        let widest = cells.max().unwrap_or(0).max(characters(&column.header));
        let is_long = matches!(column.key, "input_shapes" | "stack" | "overload");
        column.width = if is_long {
            column.width.min(widest)
        } else {
            widest
        };
        if column.key == "input_shapes" {
            let width = column.width;
            column.cell = Box::new(move |_, row| {
                let shapes = row.shapes.as_deref().unwrap_or_default();
                cut(shapes, Some(width))
            });
        }
    }
    let room = |columns: &[Column]| {
        let others = columns.iter().filter(|column| column.key != "name");
        let taken: usize = others.map(|column| column.width + SPACING).sum();
        // Every line ends with the spacing of its last column.
        width.saturating_sub(taken + SPACING)
    };
    let sorted_by = sheet.options.rows.sort_by.map(SortBy::name);
    let rank = |column: &Column| {
        // The sort key is the most important number.
        let is_kept = sorted_by == Some(column.key);
        (!is_kept).then(|| TABLE_COLUMNS.iter().position(|key| *key == column.key))
    };
    while sheet.options.columns.is_none() && columns.len() > 2 && room(&columns) < LEAST_NAME_WIDTH
    {
        let least = (0..columns.len()).max_by_key(|&index| rank(&columns[index]));
        columns.remove(least.expect("there are columns"));
    }
    let room = room(&columns).max(LEAST_NAME_WIDTH.min(width / 3));
    for column in columns.iter_mut().filter(|column| column.key == "name") {
        let longest = rows.iter().map(|row| characters(&row.name)).max();
        let width = longest
            .unwrap_or(0)
            .max(characters(&column.header))
            .min(room);
        column.width = width;
        column.cell = Box::new(move |_, row| cut(&row.name, Some(width)));
    }
    columns
}

/// Returns the columns that the rows have values for, from left to right.
fn columns(sheet: &Sheet<'_>) -> Vec<Column> {
    let mut columns = vec![column("name", name_width(sheet), |sheet, row| {
        cut_name(&row.name, sheet.options.max_name_column_width)
    })];
    if sheet.rows.iter().any(|row| !row.overload.is_empty()) {
        let width = name_width(sheet);
        columns.push(column("overload", width, |sheet, row| {
            cut_name(&row.overload, sheet.options.max_name_column_width)
        }));
    }
    columns.extend(cpu_columns());
    if sheet.rows.iter().any(|row| row.margin.is_some()) {
        columns.push(number("margin", margin_cell));
    }
    if sheet.options.rows.percentiles {
        columns.extend(percentile_columns());
    }
    if sheet.device.is_some() {
        columns.extend(device_columns());
    }
    if sheet.facts.memory {
        columns.extend(memory_columns(sheet));
    }
    columns.push(amounts(Metric::Count));
    if sheet.rows.iter().any(|row| row.node != -1) {
        columns.push(number("node", |_, row| row.node.to_string()));
    }
    if sheet.shapes_width > 0 {
        let width = sheet.shapes_width;
        columns.push(column("input_shapes", width, |sheet, row| {
            let shapes = row.shapes.as_deref().unwrap_or_default();
            shapes.chars().take(sheet.shapes_width).collect()
        }));
    }
    if sheet.source_width > 0 {
        columns.push(source_column(sheet.source_width));
    }
    if sheet.flops_unit.is_some() {
        columns.push(number(Metric::Flops.name(), flops_cell));
    }
    for column in &mut columns {
        column.header = match sheet.options.source_header {
            Some(source) if column.key == "stack" => source.into(),
            Some(_) | None => header(sheet, column.key),
        };
    }
    columns
}

fn cpu_columns() -> [Column; 5] {
    [
        number("self_cpu_percent", |sheet, row| {
            sheet.share(row.float(Metric::SelfCpuTimeTotal))
        }),
        amounts(Metric::SelfCpuTimeTotal),
        number("cpu_percent", |sheet, row| {
            if row.is_async {
                "0".into()
            } else {
                sheet.share(row.float(Metric::CpuTimeTotal))
            }
        }),
        amounts(Metric::CpuTimeTotal),
        amounts(Metric::CpuTime),
    ]
}

fn percentile_columns() -> [Column; 4] {
    let spread = |key, of: fn(Percentiles) -> Nanos| {
        number(key, move |sheet, row| match row.percentiles {
            Some(found) => sheet.time(microseconds(of(found))),
            None => "--".into(),
        })
    };
    [
        spread("p50", |found| found.p50),
        spread("p90", |found| found.p90),
        spread("p99", |found| found.p99),
        spread("max", |found| found.max),
    ]
}

fn device_columns() -> [Column; 4] {
    [
        amounts(Metric::SelfDeviceTimeTotal),
        number("self_device_percent", |sheet, row| {
            let (_, total) = sheet.device.unwrap_or_default();
            share_text(row.float(Metric::SelfDeviceTimeTotal), total)
        }),
        amounts(Metric::DeviceTimeTotal),
        amounts(Metric::DeviceTime),
    ]
}

fn memory_columns(sheet: &Sheet<'_>) -> Vec<Column> {
    let mut columns = vec![
        amounts(Metric::CpuMemoryUsage),
        amounts(Metric::SelfCpuMemoryUsage),
    ];
    let has_memory = |row: &Row<'_>| row.float(Metric::SelfDeviceMemoryUsage) > 0.0;
    if sheet.facts.device.is_some() && sheet.rows.iter().any(has_memory) {
        columns.extend([
            amounts(Metric::DeviceMemoryUsage),
            amounts(Metric::SelfDeviceMemoryUsage),
        ]);
    }
    columns
}

fn source_column(width: usize) -> Column {
    Column {
        frame: Some(|sheet, frame| cut_source(frame, sheet.source_width)),
        ..column("stack", width, |sheet, row| {
            let first = row.stack.first();
            first.map_or_else(String::new, |frame| cut_source(frame, sheet.source_width))
        })
    }
}

/// Returns the margin of the self CPU time as a share of it.
fn margin_cell(_sheet: &Sheet<'_>, row: &Row<'_>) -> String {
    row.margin.map_or_else(
        || "--".into(),
        |margin| {
            let margin = microseconds(margin.self_cpu_total);
            share_text(margin, row.float(Metric::SelfCpuTimeTotal))
        },
    )
}

fn flops_cell(sheet: &Sheet<'_>, row: &Row<'_>) -> String {
    let flops = row.float(Metric::Flops);
    match sheet.flops_unit {
        Some(unit) if flops > 0.0 => format!("{:8.3}", flops / 1000_f64.powi(unit as i32)),
        Some(_) | None => "--".into(),
    }
}

fn name_width(sheet: &Sheet<'_>) -> usize {
    let longest = sheet.rows.iter().map(|row| characters(&row.name)).max();
    capped(
        longest.unwrap_or(0) + 4,
        sheet.options.max_name_column_width,
    )
}

/// Cuts a long name and appends three dots. Like torch, cuts names that would just fit.
pub(super) fn cut_name(name: &str, limit: Option<usize>) -> String {
    let Some(kept) = limit.map(|limit| limit.saturating_sub(3)) else {
        return name.into();
    };
    if characters(name) < kept {
        return name.into();
    }
    let head: String = name.chars().take(kept).collect();
    head + "..."
}

/// Keeps the end of a frame that is too long, because the function matters more than the folder.
fn cut_source(frame: &str, width: usize) -> String {
    let length = characters(frame);
    if length <= width {
        return frame.into();
    }
    let end = frame.chars().skip(length - width);
    if width > 3 {
        return "...".chars().chain(end.skip(3)).collect();
    }
    end.collect()
}
