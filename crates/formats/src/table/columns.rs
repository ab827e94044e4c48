//! The columns of a table, from left to right.

use mindprof_model::Nanos;

use super::{Sheet, capped, characters};
use crate::row::microseconds;
use crate::{Row, memory_text, share_text};

/// One column: everything the layout needs to know about it.
pub(super) struct Column {
    pub(super) header: String,
    pub(super) width: usize,
    pub(super) cell: fn(&Sheet<'_>, &Row<'_>) -> String,
    /// How one frame of a stack is shown, in the column that has them; it is aligned to the left.
    pub(super) frame: Option<fn(&Sheet<'_>, &str) -> String>,
}

const NUMBER_WIDTH: usize = 12;
const FLOPS_UNITS: [&str; 6] = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"];

type Cell = fn(&Sheet<'_>, &Row<'_>) -> String;

fn column(header: impl Into<String>, width: usize, cell: Cell) -> Column {
    Column {
        header: header.into(),
        width,
        cell,
        frame: None,
    }
}

fn number(header: impl Into<String>, cell: Cell) -> Column {
    column(header, NUMBER_WIDTH, cell)
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
    if sheet.options.percentiles {
        columns.extend(percentile_columns());
    }
    if let Some((device, _)) = sheet.device {
        columns.extend(device_columns(device));
    }
    if sheet.facts.memory {
        columns.extend(memory_columns(sheet));
    }
    columns.push(number("# of Calls", |_, row| row.count.to_string()));
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
        number("Self CPU %", |sheet, row| sheet.share(row.self_cpu)),
        number("Self CPU", |sheet, row| sheet.time(row.self_cpu)),
        number("CPU total %", |sheet, row| {
            if row.is_async {
                "0".into()
            } else {
                sheet.share(row.cpu_total)
            }
        }),
        number("CPU total", |sheet, row| sheet.time(row.cpu_total)),
        number("CPU time avg", |sheet, row| {
            sheet.time(row.mean(row.cpu_total))
        }),
    ]
}

fn percentile_columns() -> [Column; 4] {
    [
        number("CPU p50", |sheet, row| {
            spread(sheet, row.percentiles.map(|found| found.p50))
        }),
        number("CPU p90", |sheet, row| {
            spread(sheet, row.percentiles.map(|found| found.p90))
        }),
        number("CPU p99", |sheet, row| {
            spread(sheet, row.percentiles.map(|found| found.p99))
        }),
        number("CPU max", |sheet, row| {
            spread(sheet, row.percentiles.map(|found| found.max))
        }),
    ]
}

fn spread(sheet: &Sheet<'_>, time: Option<Nanos>) -> String {
    time.map_or("--".into(), |time| sheet.time(microseconds(time)))
}

fn device_columns(device: &str) -> [Column; 4] {
    [
        number(format!("Self {device}"), |sheet, row| {
            sheet.time(row.self_device)
        }),
        number(format!("Self {device} %"), |sheet, row| {
            let (_, total) = sheet.device.unwrap_or_default();
            share_text(row.self_device, total)
        }),
        number(format!("{device} total"), |sheet, row| {
            sheet.time(row.device_total)
        }),
        number(format!("{device} time avg"), |sheet, row| {
            sheet.time(row.mean(row.device_total))
        }),
    ]
}

fn memory_columns(sheet: &Sheet<'_>) -> Vec<Column> {
    let mut columns = vec![
        number("CPU Mem", |_, row| memory_text(row.cpu_memory)),
        number("Self CPU Mem", |_, row| memory_text(row.self_cpu_memory)),
    ];
    let device = sheet.facts.device.as_ref();
    let is_used = sheet.rows.iter().any(|row| row.self_device_memory > 0);
    if let Some(device) = device.filter(|_| is_used) {
        columns.push(number(format!("{device} Mem"), |_, row| {
            memory_text(row.device_memory)
        }));
        columns.push(number(format!("Self {device} Mem"), |_, row| {
            memory_text(row.self_device_memory)
        }));
    }
    columns
}

fn source_column(width: usize) -> Column {
    Column {
        header: "Source Location".into(),
        width,
        cell: |sheet, row| match row.stack.first() {
            Some(frame) => cut_source(frame, sheet.source_width),
            None => String::new(),
        },
        frame: Some(|sheet, frame| cut_source(frame, sheet.source_width)),
    }
}

fn flops_cell(sheet: &Sheet<'_>, row: &Row<'_>) -> String {
    match (row.flops, sheet.flops_unit) {
        (Some(flops), Some(unit)) if flops > 0.0 => {
            format!("{:8.3}", flops / 1000_f64.powi(unit as i32))
        }
        _ => "--".into(),
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
