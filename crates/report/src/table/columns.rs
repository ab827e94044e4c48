//! The columns of a table, from left to right.

use mindprof_analyze::{Metric, Percentiles, microseconds};
use mindprof_formats::Row;
use mindprof_model::Nanos;

use super::{Sheet, capped};
use crate::grid::characters;
use crate::number::share_text;

/// One column: everything the layout needs to know about it.
pub(super) struct Column {
    pub(super) header: String,
    pub(super) width: usize,
    pub(super) cell: Box<Cell>,
    /// How one frame of a stack is shown, in the column that has them; it is aligned to the left.
    pub(super) frame: Option<fn(&Sheet<'_>, &str) -> String>,
}

const NUMBER_WIDTH: usize = 12;
const FLOPS_UNITS: [&str; 6] = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"];

type Cell = dyn Fn(&Sheet<'_>, &Row<'_>) -> String;

fn column(
    header: impl Into<String>,
    width: usize,
    cell: impl Fn(&Sheet<'_>, &Row<'_>) -> String + 'static,
) -> Column {
    Column {
        header: header.into(),
        width,
        cell: Box::new(cell),
        frame: None,
    }
}

fn number(
    header: impl Into<String>,
    cell: impl Fn(&Sheet<'_>, &Row<'_>) -> String + 'static,
) -> Column {
    column(header, NUMBER_WIDTH, cell)
}

fn amounts(header: impl Into<String>, metric: Metric) -> Column {
    number(header, move |sheet, row| sheet.amount(row, metric))
}

/// Returns the columns that the rows call for, from left to right.
pub(super) fn columns(sheet: &Sheet<'_>) -> Vec<Column> {
    let mut columns = vec![column("Name", name_width(sheet), |sheet, row| {
        cut_name(&row.name, sheet.options.max_name_column_width)
    })];
    if sheet.rows.iter().any(|row| !row.overload.is_empty()) {
        columns.push(column("Overload Name", name_width(sheet), |sheet, row| {
            cut_name(&row.overload, sheet.options.max_name_column_width)
        }));
    }
    columns.extend(host_columns());
    if sheet.options.rows.percentiles {
        columns.extend(percentile_columns());
    }
    if let Some((device, _)) = sheet.device {
        columns.extend(device_columns(device));
    }
    if sheet.facts.memory {
        columns.extend(memory_columns(sheet));
    }
    columns.push(amounts("# of Calls", Metric::Count));
    if sheet.rows.iter().any(|row| row.node != -1) {
        columns.push(number("Node ID", |_, row| row.node.to_string()));
    }
    if sheet.shapes_width > 0 {
        columns.push(column("Input Shapes", sheet.shapes_width, |sheet, row| {
            let shapes = row.shapes.as_deref().unwrap_or_default();
            shapes.chars().take(sheet.shapes_width).collect()
        }));
    }
    if sheet.source_width > 0 {
        columns.push(source_column(sheet.source_width));
    }
    if let Some(unit) = sheet.flops_unit {
        columns.push(number(format!("Total {}", FLOPS_UNITS[unit]), flops_cell));
    }
    columns
}

fn host_columns() -> [Column; 5] {
    [
        number("Self CPU %", |sheet, row| {
            sheet.share(row.float(Metric::SelfCpuTimeTotal))
        }),
        amounts("Self CPU", Metric::SelfCpuTimeTotal),
        number("CPU total %", |sheet, row| {
            if row.is_async {
                "0".into()
            } else {
                sheet.share(row.float(Metric::CpuTimeTotal))
            }
        }),
        amounts("CPU total", Metric::CpuTimeTotal),
        amounts("CPU time avg", Metric::CpuTime),
    ]
}

fn percentile_columns() -> [Column; 4] {
    let spread = |header, of: fn(Percentiles) -> Nanos| {
        number(header, move |sheet, row| match row.percentiles {
            Some(found) => sheet.time(microseconds(of(found))),
            None => "--".into(),
        })
    };
    [
        spread("CPU p50", |found| found.p50),
        spread("CPU p90", |found| found.p90),
        spread("CPU p99", |found| found.p99),
        spread("CPU max", |found| found.max),
    ]
}

fn device_columns(device: &str) -> [Column; 4] {
    [
        amounts(format!("Self {device}"), Metric::SelfDeviceTimeTotal),
        number(format!("Self {device} %"), |sheet, row| {
            let (_, total) = sheet.device.unwrap_or_default();
            share_text(row.float(Metric::SelfDeviceTimeTotal), total)
        }),
        amounts(format!("{device} total"), Metric::DeviceTimeTotal),
        amounts(format!("{device} time avg"), Metric::DeviceTime),
    ]
}

fn memory_columns(sheet: &Sheet<'_>) -> Vec<Column> {
    let mut columns = vec![
        amounts("CPU Mem", Metric::CpuMemoryUsage),
        amounts("Self CPU Mem", Metric::SelfCpuMemoryUsage),
    ];
    let device = sheet.facts.device.as_ref();
    let has_memory = |row: &Row<'_>| row.float(Metric::SelfDeviceMemoryUsage) > 0.0;
    if let Some(device) = device.filter(|_| sheet.rows.iter().any(has_memory)) {
        columns.extend([
            amounts(format!("{device} Mem"), Metric::DeviceMemoryUsage),
            amounts(format!("Self {device} Mem"), Metric::SelfDeviceMemoryUsage),
        ]);
    }
    columns
}

fn source_column(width: usize) -> Column {
    Column {
        frame: Some(|sheet, frame| cut_source(frame, sheet.source_width)),
        ..column("Source Location", width, |sheet, row| {
            let first = row.stack.first();
            first.map_or_else(String::new, |frame| cut_source(frame, sheet.source_width))
        })
    }
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

/// Cuts a name that does not fit beside three dots.
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

/// Keeps the end of a frame that does not fit: the function says more than the folder.
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
