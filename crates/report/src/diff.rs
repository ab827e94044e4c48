//! The difference of two profiles as text.

use mindprof_analyze::{Change, Diff, Measure, Sums, microseconds};
use mindprof_formats::device_name;
use mindprof_model::{DeviceKind, Nanos};

use crate::grid::{Align, cut, grid, push_line};
use crate::number::time_text;

#[cfg(test)]
mod tests;

/// How the text of a difference is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffLayout {
    /// How many rows are shown; none shows all that changed.
    pub row_limit: Option<usize>,
    /// How wide the column of names gets; longer names are cut.
    pub max_name_column_width: Option<usize>,
    /// How wide the column of input shapes gets; longer ones are cut.
    pub max_shapes_column_width: Option<usize>,
}

impl Default for DiffLayout {
    fn default() -> Self {
        Self {
            row_limit: Some(100),
            max_name_column_width: Some(55),
            max_shapes_column_width: Some(40),
        }
    }
}

/// Returns the rows that changed as text, the largest change first, and the totals below them.
pub fn diff_text(diff: &Diff, layout: &DiffLayout) -> String {
    let changed: Vec<&Change> = diff.rows.iter().filter(|row| !row.is_none()).collect();
    let mut text = String::new();
    if changed.is_empty() {
        push_line(&mut text, "No change.");
    } else {
        let limit = layout.row_limit.unwrap_or(usize::MAX);
        let rows: Vec<Vec<String>> = changed
            .iter()
            .take(limit)
            .map(|row| cells(diff, row, layout))
            .collect();
        text = grid(&columns(diff), &rows);
        let more = changed.len().saturating_sub(limit);
        if more > 0 {
            push_line(&mut text, &format!("... and {more} more rows that changed"));
        }
        text.push('\n');
    }
    push_totals(&mut text, diff, changed.len());
    text
}

fn columns(diff: &Diff) -> Vec<(&'static str, Align)> {
    let mut columns = vec![("Name", Align::Left)];
    if has_devices(diff) {
        columns.push(("Device", Align::Left));
    }
    if diff.by_shapes {
        columns.push(("Input Shapes", Align::Left));
    }
    let numbers = [
        "Calls A", "Calls B", "Self A", "Self B", "Change", "Change %", "Total A", "Total B",
        "Change",
    ];
    columns.extend(numbers.map(|header| (header, Align::Right)));
    columns
}

fn cells(diff: &Diff, row: &Change, layout: &DiffLayout) -> Vec<String> {
    let mut cells = vec![cut(&row.key, layout.max_name_column_width)];
    if has_devices(diff) {
        let range = if row.is_range_on_device() {
            " (range)"
        } else {
            ""
        };
        cells.push(format!("{}{range}", device_name(row.device)));
    }
    if diff.by_shapes {
        let shapes = row.shapes.as_deref().map(shapes_text).unwrap_or_default();
        cells.push(cut(&shapes, layout.max_shapes_column_width));
    }
    let (before, after) = row.values(Measure::Count);
    cells.extend([before, after].map(|count| count.to_string()));
    for measure in [Measure::SelfTime, Measure::TotalTime] {
        let (before, after) = row.values(measure);
        let absent = |sums: &Option<Sums>, value| match sums {
            Some(_) => time(value),
            None => "-".into(),
        };
        cells.push(absent(&row.before, before));
        cells.push(absent(&row.after, after));
        cells.push(time_change(row.difference(measure)));
        if measure == Measure::SelfTime {
            cells.push(match (&row.before, &row.after) {
                (None, _) => "new".into(),
                (_, None) => "gone".into(),
                (Some(_), Some(_)) => percent(before, after),
            });
        }
    }
    cells
}

/// Returns whether there is something to tell devices apart by.
fn has_devices(diff: &Diff) -> bool {
    diff.rows.iter().any(|row| row.device != DeviceKind::Cpu)
}

fn push_totals(text: &mut String, diff: &Diff, changed: usize) {
    let count = |is: fn(&Change) -> bool| diff.rows.iter().filter(|row| is(row)).count();
    let (new, gone) = (
        count(|row| row.before.is_none()),
        count(|row| row.after.is_none()),
    );
    let unchanged = diff.rows.len() - changed;
    push_line(
        text,
        &format!(
            "Rows: {} changed, {new} new, {gone} gone, {unchanged} without change",
            changed - new - gone
        ),
    );
    let (before, after) = (&diff.before, &diff.after);
    push_line(
        text,
        &format!("Events: {} -> {}", before.count, after.count),
    );
    push_time(text, "Self CPU time total", before.host, after.host);
    if before.device.0 > 0 || after.device.0 > 0 {
        push_time(text, "Self device time total", before.device, after.device);
    }
    push_time(text, "Span", before.span, after.span);
}

fn push_time(text: &mut String, what: &str, before: Nanos, after: Nanos) {
    let (first, second) = (time(before.0), time(after.0));
    let percent = percent(before.0, after.0);
    push_line(text, &format!("{what}: {first} -> {second} ({percent})"));
}

fn time(nanoseconds: u64) -> String {
    time_text(microseconds(Nanos(nanoseconds)), None)
}

fn time_change(nanoseconds: i64) -> String {
    let sign = match nanoseconds {
        0 => "",
        1.. => "+",
        ..0 => "-",
    };
    format!("{sign}{}", time(nanoseconds.unsigned_abs()))
}

fn percent(before: u64, after: u64) -> String {
    if before == after {
        return "0.0%".into();
    }
    if before == 0 {
        return "from 0".into();
    }
    let difference = after as f64 - before as f64;
    format!("{:+.1}%", difference * 100.0 / before as f64)
}

fn shapes_text(shapes: &[Vec<i64>]) -> String {
    let shapes: Vec<String> = shapes.iter().map(|dims| format!("{dims:?}")).collect();
    format!("[{}]", shapes.join(", "))
}
