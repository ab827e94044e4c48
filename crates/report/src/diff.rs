//! The difference of two profiles as a table of the rows that changed, with totals below it.

use mindprof_analyze::{Sums, microseconds};
use mindprof_answers::{Change, Diff, Doubt, Label, Measure};
use mindprof_model::{DeviceKind, Nanos};

use crate::functions::short_place;
use crate::grid::{Align, characters, cut, grid, push_line, push_wrapped};
use crate::number::time_text;
use crate::verdict::doubt_text;

#[cfg(test)]
mod tests;

/// The layout of the text of a difference.
///
/// The command line and Python fill it in from their options. It affects only the text; which rows
/// differ is decided by [`Diff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffLayout {
    /// The largest number of rows to show; `None` shows all that changed.
    pub row_limit: Option<usize>,
    /// The maximum width of the column of names. Longer names are cut.
    pub max_name_column_width: Option<usize>,
    /// The maximum width of the column of input shapes. Longer shapes are cut.
    pub max_shapes_column_width: Option<usize>,
    /// The maximum width of the text; `None` sets no limit. Names and shapes are cut and the least
    /// important columns are dropped until the text fits.
    pub max_width: Option<usize>,
}

impl Default for DiffLayout {
    fn default() -> Self {
        Self {
            row_limit: Some(100),
            max_name_column_width: Some(55),
            max_shapes_column_width: Some(40),
            max_width: None,
        }
    }
}

/// Returns the rows that changed as text, the largest change first. The totals are below them, and
/// then a note for each fact that makes the comparison unfair, such as lost events.
///
/// If counts are compared, a row whose count is the same has not changed, even if its time has.
pub fn diff_text(diff: &Diff, layout: &DiffLayout) -> String {
    let changed: Vec<&Change> = diff
        .rows
        .iter()
        .filter(|row| diff.is_changed(row))
        .collect();
    let shown = &changed[..changed.len().min(layout.row_limit.unwrap_or(usize::MAX))];
    let mut text = String::new();
    if changed.is_empty() {
        push_line(
            &mut text,
            match diff.measure {
                Measure::Count => "No change of counts.",
                Measure::SelfTime | Measure::TotalTime => "No change.",
            },
        );
    } else if !shown.is_empty() {
        let has_shapes;
        (text, has_shapes) = fitting_grid(diff, shown, layout);
        let more = changed.len() - shown.len();
        if more > 0 {
            let rows = if more == 1 { "row" } else { "rows" };
            let line = format!("... and {more} more {rows} that changed");
            push_wrapped(&mut text, &line, layout.max_width);
        }
        if diff.by_shapes && !has_shapes {
            let line = "Rows are split by input shapes; --by name joins them.";
            push_wrapped(&mut text, line, layout.max_width);
        }
        text.push('\n');
    }
    push_device_times(&mut text, diff, layout);
    push_totals(&mut text, diff, changed.len(), layout.max_width);
    for note in Doubt::notes(diff) {
        let line = format!("note: {}", doubt_text(note, ["A", "B"]));
        push_wrapped(&mut text, &line, layout.max_width);
    }
    text
}

/// Returns the header of the column that shows a label, here and in tables.
pub const fn label_header(label: Label) -> &'static str {
    match label {
        Label::Line => "Line",
        Label::Function => "Function",
        Label::Module => "Module",
        Label::Dtype => "Input Dtypes",
    }
}

/// One column: its header, its alignment, its kind and the function that makes a cell.
struct Column {
    header: &'static str,
    align: Align,
    kind: Kind,
    cell: Box<dyn Fn(&Change) -> String>,
}

/// The content of a column, which decides when it is dropped for lack of width.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Device,
    Shapes,
    /// The label that rows are split by. It is never dropped.
    Label,
    /// A measure, before or after.
    Values(Measure),
    /// The change of a measure.
    Change(Measure),
    /// The change of the self time in percent.
    Percent,
}

/// Returns all columns, from left to right.
fn columns(diff: &Diff, layout: &DiffLayout) -> Vec<Column> {
    let column = |header, align, kind, cell: Box<dyn Fn(&Change) -> String>| Column {
        header,
        align,
        kind,
        cell,
    };
    let (names, shapes) = (layout.max_name_column_width, layout.max_shapes_column_width);
    let name = Box::new(move |row: &Change| cut(&row.key, names));
    let mut columns = vec![column("Name", Align::Left, Kind::Name, name)];
    if has_devices(diff) {
        let backend = diff.device_name(DeviceKind::PrivateUse1).to_owned();
        let cell = Box::new(move |row: &Change| device_cell(row, &backend));
        columns.push(column("Device", Align::Left, Kind::Device, cell));
    }
    if let Some(label) = diff.label {
        let cell = move |row: &Change| {
            let label = row.label.as_deref().unwrap_or_default();
            shapes.map_or_else(|| label.into(), |limit| short_place(label, limit))
        };
        columns.push(column(
            label_header(label),
            Align::Left,
            Kind::Label,
            Box::new(cell),
        ));
    }
    if diff.by_shapes {
        let cell = move |row: &Change| {
            let text = row.shapes.as_deref().map(shapes_text).unwrap_or_default();
            cut(&text, shapes)
        };
        let cell = Box::new(cell);
        columns.push(column("Input Shapes", Align::Left, Kind::Shapes, cell));
    }
    let mut number = |header, kind, cell: fn(&Change) -> String| {
        columns.push(column(header, Align::Right, kind, Box::new(cell)));
    };
    let (calls, own, total) = (Measure::Count, Measure::SelfTime, Measure::TotalTime);
    number("Calls A", Kind::Values(calls), |row| {
        row.values(Measure::Count).0.to_string()
    });
    number("Calls B", Kind::Values(calls), |row| {
        row.values(Measure::Count).1.to_string()
    });
    if diff.measure == calls {
        number("Calls diff", Kind::Change(calls), |row| {
            format!("{:+}", row.difference(Measure::Count))
        });
    }
    number("Self A", Kind::Values(own), |row| {
        before_cell(row, Measure::SelfTime)
    });
    number("Self B", Kind::Values(own), |row| {
        after_cell(row, Measure::SelfTime)
    });
    number("Self diff", Kind::Change(own), |row| {
        time_change(row.difference(Measure::SelfTime))
    });
    number("Change %", Kind::Percent, percent_cell);
    number("Total A", Kind::Values(total), |row| {
        before_cell(row, Measure::TotalTime)
    });
    number("Total B", Kind::Values(total), |row| {
        after_cell(row, Measure::TotalTime)
    });
    number("Total diff", Kind::Change(total), |row| {
        time_change(row.difference(Measure::TotalTime))
    });
    columns
}

/// The maximum widths of shapes and names to try when the text is too wide, from wide to narrow.
const WIDTHS: [(usize, usize); 5] = [(40, 55), (24, 55), (24, 40), (16, 32), (12, 24)];
/// The maximum widths of names to try after all else has failed.
const NARROW_NAMES: [usize; 3] = [16, 12, 8];

/// Returns the rows below their header, no wider than the layout allows, and whether they have all
/// columns that rows are matched by.
fn fitting_grid(diff: &Diff, rows: &[&Change], layout: &DiffLayout) -> (String, bool) {
    let left_out = |kinds: &[Kind], layout: &DiffLayout| {
        let mut columns = columns(diff, layout);
        columns.retain(|column| !kinds.contains(&column.kind));
        let headers: Vec<_> = columns
            .iter()
            .map(|column| (column.header, column.align))
            .collect();
        let cells = |row: &&Change| columns.iter().map(|column| (column.cell)(row)).collect();
        grid(
            &headers,
            &rows.iter().map(cells).collect::<Vec<Vec<String>>>(),
        )
    };
    let mut text = left_out(&[], layout);
    let Some(width) = layout.max_width else {
        return (text, true);
    };
    let mut has_shapes = true;
    let fits = |text: &str| text.lines().all(|line| characters(line) <= width);
    let least = |own: Option<usize>, limit: usize| Some(own.map_or(limit, |own| own.min(limit)));
    let order = leaving_order(diff.measure);
    let narrow = |shapes, names| DiffLayout {
        max_shapes_column_width: least(layout.max_shapes_column_width, shapes),
        max_name_column_width: least(layout.max_name_column_width, names),
        ..*layout
    };
    let roomy = (0..=order.len()).flat_map(|kinds| WIDTHS.map(|widths| (kinds, widths)));
    let tight = NARROW_NAMES.map(|names| (order.len(), (0, names)));
    for (kinds, (shapes, names)) in roomy.chain(tight) {
        if fits(&text) {
            break;
        }
        text = left_out(&order[..kinds], &narrow(shapes, names));
        has_shapes = !order[..kinds].contains(&Kind::Shapes);
    }
    (text, has_shapes)
}

/// Returns the columns to drop for lack of width, the least important first. The change of the
/// measure that rows are sorted by is always kept.
fn leaving_order(measure: Measure) -> Vec<Kind> {
    let (calls, own, total) = (Measure::Count, Measure::SelfTime, Measure::TotalTime);
    let others = [total, calls, own]
        .into_iter()
        .filter(|&one| one != measure);
    let mut order: Vec<Kind> = others
        .flat_map(|one| [Kind::Values(one), Kind::Change(one)])
        .collect();
    order.push(Kind::Shapes);
    if measure != Measure::Count {
        order.push(Kind::Values(measure));
    }
    order.extend([Kind::Device, Kind::Percent]);
    order
}

/// Returns the device of a row; `backend` is the name of a third-party one.
fn device_cell(row: &Change, backend: &str) -> String {
    let range = if row.is_range_on_device() {
        " (range)"
    } else {
        ""
    };
    let name = match row.device {
        DeviceKind::PrivateUse1 => backend,
        kind => kind.name(),
    };
    format!("{name}{range}")
}

fn before_cell(row: &Change, measure: Measure) -> String {
    side_cell(row.before.as_ref(), row.values(measure).0)
}

fn after_cell(row: &Change, measure: Measure) -> String {
    side_cell(row.after.as_ref(), row.values(measure).1)
}

fn side_cell(sums: Option<&Sums>, value: u64) -> String {
    sums.map_or_else(|| "-".into(), |_| time(value))
}

fn percent_cell(row: &Change) -> String {
    let (before, after) = row.values(Measure::SelfTime);
    match (&row.before, &row.after) {
        (None, _) => "new".into(),
        (_, None) => "gone".into(),
        (Some(_), Some(_)) => percent(before, after),
    }
}

/// Returns whether some row ran on a device.
fn has_devices(diff: &Diff) -> bool {
    diff.rows.iter().any(|row| row.device != DeviceKind::Cpu)
}

/// The largest number of operators that are compared by their time on accelerators.
const DEVICE_ROWS: usize = 20;

/// If the profiles are of different accelerators, compares the times of operators on them, because
/// their kernels cannot be compared.
fn push_device_times(text: &mut String, diff: &Diff, layout: &DiffLayout) {
    let Some(kinds) = diff.different_accelerators() else {
        return;
    };
    let [a, b] = kinds.map(|kind| diff.device_name(kind));
    let rows = diff.operators_on_devices();
    let label = diff.label.map(label_header);
    // Two such columns and the numbers fit into 80 characters.
    let limit = if label.is_some() { 14 } else { 26 };
    let (a_header, b_header) = (format!("{a} A"), format!("{b} B"));
    let mut headers = vec![("Operator", Align::Left)];
    headers.extend(label.map(|label| (label, Align::Left)));
    let numbers = [
        "Calls A",
        "Calls B",
        a_header.as_str(),
        b_header.as_str(),
        "Change %",
    ];
    headers.extend(numbers.into_iter().map(|header| (header, Align::Right)));
    let cells = |row: &Change| {
        let [before, after] = row.device_times();
        let (calls_before, calls_after) = row.values(Measure::Count);
        let cell = |calls: u64, device_time: Nanos| match calls {
            0 => "-".to_owned(),
            _ => time(device_time.0),
        };
        let change = match (&row.before, &row.after) {
            (None, _) => "new".into(),
            (_, None) => "gone".into(),
            (Some(_), Some(_)) => percent(before.0, after.0),
        };
        let mut cells = vec![cut(&row.key, Some(limit))];
        if label.is_some() {
            let label = row.label.as_deref().unwrap_or_default();
            cells.push(short_place(label, limit));
        }
        cells.extend([
            calls_before.to_string(),
            calls_after.to_string(),
            cell(calls_before, before),
            cell(calls_after, after),
            change,
        ]);
        cells
    };
    let shown = rows.iter().take(DEVICE_ROWS).map(|&row| cells(row));
    let shown: Vec<Vec<String>> = shown.collect();
    let note = format!(
        "Kernels and runtime calls of {a} and {b} have different names, so that they are new or gone above. Operators and modules can be compared; their time on the accelerators, with that of operators inside:"
    );
    push_wrapped(text, &note, layout.max_width.or(Some(80)));
    if shown.is_empty() {
        push_line(text, "no operator is known to have launched a kernel");
    } else {
        text.push_str(&grid(&headers, &shown));
    }
    let more = rows.len() - shown.len();
    if more > 0 {
        push_line(text, &format!("... and {more} more"));
    }
    text.push('\n');
}

fn push_totals(text: &mut String, diff: &Diff, changed: usize, width: Option<usize>) {
    let count = |is: fn(&Change) -> bool| diff.rows.iter().filter(|row| is(row)).count();
    let (new, gone) = (
        count(|row| row.before.is_none()),
        count(|row| row.after.is_none()),
    );
    let unchanged = diff.rows.len() - changed;
    let mut push = |line: String| push_wrapped(text, &line, width);
    push(format!(
        "Rows: {} changed, {new} new, {gone} gone, {unchanged} without change",
        changed - new - gone
    ));
    let (before, after) = (&diff.before, &diff.after);
    push(format!(
        "Events compared: {} -> {}",
        before.count, after.count
    ));
    push(time_line("Self CPU time total", before.host, after.host));
    if before.device.0 > 0 || after.device.0 > 0 {
        push(time_line(
            "Self device time total",
            before.device,
            after.device,
        ));
    }
    push(time_line("Span", before.span, after.span));
    if before.imports.0 > 0 || after.imports.0 > 0 {
        push(time_line(
            "Imports, not compared",
            before.imports,
            after.imports,
        ));
    }
}

fn time_line(what: &str, before: Nanos, after: Nanos) -> String {
    let (first, second) = (time(before.0), time(after.0));
    let percent = percent(before.0, after.0);
    format!("{what}: {first} -> {second} ({percent})")
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
