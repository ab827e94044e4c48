//! The rates of operators and kernels against the limits of the device, and what is not counted.

use mindprof_answers::{DeviceUse, Rate};
use mindprof_model::Nanos;

use super::{DeviceLayout, push_more};
use crate::grid::{Align, cut, grid, push_wrapped};
use crate::steps::{percent, short_time};
use crate::visible::visible;

/// The width of the other columns of the widest table of rates.
const NUMBERS: usize = 50;

/// The number of operators that are named as not counted, and the longest name.
const NAMED: usize = 5;
const LONGEST_NAME: usize = 50;

pub(super) fn push_rates(text: &mut String, device: &DeviceUse, layout: DeviceLayout) {
    let kernels = device.whole.kernels;
    if kernels == Nanos::ZERO || layout.rows == 0 {
        return;
    }
    if !device.operators.is_empty() {
        push_operators(text, device, layout);
    }
    push_kernel_list(text, device, layout);
    push_not_counted(text, device, layout);
}

fn push_operators(text: &mut String, device: &DeviceUse, layout: DeviceLayout) {
    let columns = [
        ("Counted operators", Align::Left),
        ("Dtype", Align::Left),
        ("Time", Align::Right),
        ("FLOP/s", Align::Right),
        ("Limit", Align::Right),
        ("Bytes/s", Align::Right),
        ("Limit", Align::Right),
    ];
    let rows: Vec<Vec<String>> = (device.operators.iter().take(layout.rows))
        .map(|row| {
            let name = row.operator.strip_prefix("aten::");
            let name = visible(name.unwrap_or(&row.operator));
            let name = cut(&name, name_width(layout.width));
            let mut cells = vec![name, row.dtype.into(), short_time(row.time)];
            cells.extend(rate_cells(row.flops.as_ref()));
            cells.extend(rate_cells(row.bytes.as_ref()));
            cells
        })
        .collect();
    text.push('\n');
    text.push_str(&grid(&columns, &rows));
    push_more(text, device.operators.len(), layout.rows, "operator");
}

fn push_kernel_list(text: &mut String, device: &DeviceUse, layout: DeviceLayout) {
    let columns = [
        ("Kernel", Align::Left),
        ("Calls", Align::Right),
        ("Time", Align::Right),
        ("Share", Align::Right),
        ("Tensor", Align::Left),
        ("Occupancy", Align::Right),
        ("FLOP/s", Align::Right),
    ];
    let rows: Vec<Vec<String>> = (device.kernels.iter().take(layout.rows))
        .map(|row| {
            let occupancy = row.occupancy.map(|share| format!("{:.0} %", 100.0 * share));
            vec![
                cut(&visible(&short_kernel(&row.name)), name_width(layout.width)),
                row.calls.to_string(),
                short_time(row.time),
                percent(row.time, device.whole.kernels),
                if row.uses_tensor_cores { "yes" } else { "" }.into(),
                occupancy.unwrap_or_default(),
                row.flops.map(|rate| amount(rate.per_s)).unwrap_or_default(),
            ]
        })
        .collect();
    text.push('\n');
    text.push_str(&grid(&columns, &rows));
    push_more(text, device.kernels.len(), layout.rows, "kernel");
}

/// Appends which part of the kernel time has no rate: a rate of a part would look like that of all.
fn push_not_counted(text: &mut String, device: &DeviceUse, layout: DeviceLayout) {
    let (counted, all) = (device.whole.counted, device.whole.kernels);
    let mut line = format!(
        "Operations are counted for {} of the kernel time",
        percent(counted, all)
    );
    let named: Vec<String> = (device.not_counted.iter().take(NAMED))
        .map(|row| {
            let name = row.operator.as_deref().unwrap_or("unknown operators");
            let name = cut(&visible(name), Some(LONGEST_NAME));
            format!("{name} {:.0} %", 100.0 * row.share)
        })
        .collect();
    if !named.is_empty() {
        line = format!("{line}. Not counted: {}", named.join(", "));
        let rest = device.not_counted.iter().skip(NAMED);
        let rest: f64 = rest.map(|row| row.share).sum();
        if rest > 0.0 {
            line = format!("{line}, others {:.0} %", 100.0 * rest);
        }
    }
    if device.card.is_none() {
        line = format!("{line}. The limits of this device are not known");
    }
    text.push('\n');
    push_wrapped(text, &line, layout.width);
}

fn rate_cells(rate: Option<&Rate>) -> [String; 2] {
    let share = rate.and_then(|rate| rate.share);
    [
        rate.map(|rate| amount(rate.per_s)).unwrap_or_default(),
        share.map(share_text).unwrap_or_default(),
    ]
}

fn share_text(share: f64) -> String {
    if share < 0.005 {
        "< 1 %".into()
    } else {
        format!("{:.0} %", 100.0 * share)
    }
}

/// Returns the name of a kernel without its return type and without namespaces.
fn short_kernel(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    let name = name.replace("(anonymous namespace)::", "");
    let mut short = String::with_capacity(name.len());
    let mut rest = name.as_str();
    while let Some(at) = rest.find("::") {
        let before = &rest[..at];
        let begin = before.rfind(|c: char| !c.is_alphanumeric() && c != '_');
        short.push_str(&before[..begin.map_or(0, |begin| begin + 1)]);
        rest = &rest[at + 2..];
    }
    short.push_str(rest);
    short
}

fn name_width(width: Option<usize>) -> Option<usize> {
    width.map(|width| width.saturating_sub(NUMBERS).max(8))
}

/// Returns an amount with three digits and a prefix of powers of 1000.
pub(super) fn amount(amount: f64) -> String {
    let prefixes = ["", "k", "M", "G", "T", "P", "E"];
    let (mut value, mut prefix) = (amount, 0);
    while value >= 999.5 && prefix + 1 < prefixes.len() {
        value /= 1e3;
        prefix += 1;
    }
    let digits = match value {
        _ if prefix == 0 => 0,
        0.0..9.995 => 2,
        0.0..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", prefixes[prefix])
}
