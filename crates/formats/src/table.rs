//! Averages as the text of a table, laid out as torch does.
//!
//! A table is a list of columns, each of which says its header, its width and how to make a cell from
//! a row: a new column is one entry in [`columns`].

use std::fmt::Write;

use mindprof_analyze::{Average, Averages};
use mindprof_model::{LossCause, Nanos, Profile};

use crate::{SortBy, TimeUnit, shapes_text, share_text, time_text};

#[cfg(test)]
mod tests;

/// How a table is made. The defaults are torch's.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// What the rows are sorted by; none keeps their order.
    pub sort_by: Option<SortBy>,
    /// How many rows are shown; none shows all. Totals and shares always cover all.
    pub row_limit: Option<usize>,
    /// How wide the column of source locations gets.
    pub max_src_column_width: Option<usize>,
    /// How wide the column of names gets; longer names are cut.
    pub max_name_column_width: Option<usize>,
    /// How wide the column of input shapes gets; longer ones are cut.
    pub max_shapes_column_width: Option<usize>,
    /// A text above the table.
    pub header: Option<String>,
    /// Rows whose first event has a parent are left out.
    pub top_level_events_only: bool,
    /// The unit of all times; none lets each choose its own.
    pub time_unit: Option<TimeUnit>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            sort_by: None,
            row_limit: Some(100),
            max_src_column_width: Some(75),
            max_name_column_width: Some(55),
            max_shapes_column_width: Some(80),
            header: None,
            top_level_events_only: false,
            time_unit: None,
        }
    }
}

/// What stands in place of a table without rows.
pub const NO_EVENTS: &str = "No events were recorded.\n";

/// Returns the averages of a profile as a table, or [`NO_EVENTS`] if there is no row.
///
/// Each line ends in a line feed. A profile that lost events says so in the last line.
pub fn table(profile: &Profile, averages: &Averages, options: &TableOptions) -> String {
    if averages.rows.is_empty() {
        let mut text = NO_EVENTS.into();
        write_loss(&mut text, profile);
        return text;
    }
    let sheet = Sheet::new(profile, averages, options);
    let columns = columns(&sheet);
    let mut text = String::new();
    write_heading(&mut text, &columns, options);
    for row in shown_rows(averages, options) {
        write_line(&mut text, &columns, |column| (column.cell)(&sheet, row));
    }
    write_separator(&mut text, &columns);
    write_footer(&mut text, &sheet);
    text
}

/// What the cells of a table are made from, beside their row.
struct Sheet<'a> {
    profile: &'a Profile,
    averages: &'a Averages,
    options: &'a TableOptions,
    self_cpu_total: Nanos,
    /// The width of the column of shapes, if some row has inputs to show in it.
    shapes_width: Option<usize>,
}

impl<'a> Sheet<'a> {
    fn new(profile: &'a Profile, averages: &'a Averages, options: &'a TableOptions) -> Self {
        let mut sheet = Self {
            profile,
            averages,
            options,
            self_cpu_total: averages.self_cpu_total(),
            shapes_width: None,
        };
        let texts = averages.rows.iter().map(|row| sheet.shapes(row));
        let longest = texts.map(|text| characters(&text)).max().unwrap_or(0);
        sheet.shapes_width =
            (longest > "[]".len()).then(|| capped(longest + 4, options.max_shapes_column_width));
        sheet
    }

    fn time(&self, time: Nanos) -> String {
        time_text(microseconds(time), self.options.time_unit)
    }

    fn share(&self, time: Nanos) -> String {
        share_text(microseconds(time), microseconds(self.self_cpu_total))
    }

    fn shapes(&self, row: &Average) -> String {
        row.inputs
            .map(|inputs| shapes_text(self.profile.inputs(), inputs))
            .unwrap_or_default()
    }
}

/// One column: everything the layout needs to know about it.
struct Column {
    header: &'static str,
    width: usize,
    cell: fn(&Sheet<'_>, &Average) -> String,
}

const NUMBER_WIDTH: usize = 12;
const SPACING: usize = 2;

/// Returns the columns that the rows call for, from left to right.
fn columns(sheet: &Sheet<'_>) -> Vec<Column> {
    let number = |header, cell| Column {
        header,
        width: NUMBER_WIDTH,
        cell,
    };
    let mut columns = vec![
        Column {
            header: "Name",
            width: name_width(sheet),
            cell: |sheet, row| cut_name(&row.key, sheet.options.max_name_column_width),
        },
        number("Self CPU %", |sheet, row| sheet.share(row.self_cpu_total)),
        number("Self CPU", |sheet, row| sheet.time(row.self_cpu_total)),
        number("CPU total %", |sheet, row| {
            if row.is_async {
                "0".into()
            } else {
                sheet.share(row.cpu_total)
            }
        }),
        number("CPU total", |sheet, row| sheet.time(row.cpu_total)),
        number("CPU time avg", |sheet, row| {
            let mean = microseconds(row.cpu_total) / row.count as f64;
            time_text(mean, sheet.options.time_unit)
        }),
        number("# of Calls", |_, row| row.count.to_string()),
    ];
    if let Some(width) = sheet.shapes_width {
        columns.push(Column {
            header: "Input Shapes",
            width,
            cell: |sheet, row| {
                let limit = sheet.shapes_width.unwrap_or(usize::MAX);
                sheet.shapes(row).chars().take(limit).collect()
            },
        });
    }
    columns
}

fn name_width(sheet: &Sheet<'_>) -> usize {
    let rows = sheet.averages.rows.iter();
    let longest = rows.map(|row| characters(&row.key)).max().unwrap_or(0);
    capped(longest + 4, sheet.options.max_name_column_width)
}

fn capped(width: usize, limit: Option<usize>) -> usize {
    limit.map_or(width, |limit| width.min(limit))
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn microseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

/// Cuts a name that does not fit beside three dots.
fn cut_name(name: &str, limit: Option<usize>) -> String {
    let Some(kept) = limit.map(|limit| limit.saturating_sub(3)) else {
        return name.into();
    };
    if characters(name) < kept {
        return name.into();
    }
    let head: String = name.chars().take(kept).collect();
    head + "..."
}

fn shown_rows<'a>(averages: &'a Averages, options: &TableOptions) -> Vec<&'a Average> {
    let mut rows: Vec<&Average> = averages.rows.iter().collect();
    if let Some(sort_by) = options.sort_by {
        rows.sort_by(|a, b| sort_by.compare(a, b));
    }
    rows.retain(|row| row.is_top_level || !options.top_level_events_only);
    rows.truncate(options.row_limit.unwrap_or(usize::MAX));
    rows
}

fn write_heading(text: &mut String, columns: &[Column], options: &TableOptions) {
    let width: usize = columns.iter().map(|column| column.width + SPACING).sum();
    let rule = "=".repeat(width - SPACING);
    if let Some(header) = &options.header {
        push_line(text, &rule);
        push_line(text, header);
    }
    if options.top_level_events_only {
        push_line(text, &rule);
        push_line(text, "This report only display top-level ops statistics");
    }
    write_separator(text, columns);
    write_line(text, columns, |column| column.header.into());
    write_separator(text, columns);
}

fn write_separator(text: &mut String, columns: &[Column]) {
    write_line(text, columns, |column| "-".repeat(column.width));
}

fn write_line(text: &mut String, columns: &[Column], cell: impl Fn(&Column) -> String) {
    for column in columns {
        let cell = cell(column);
        let padding = column.width.saturating_sub(characters(&cell));
        text.extend(std::iter::repeat_n(' ', padding));
        text.push_str(&cell);
        text.extend(std::iter::repeat_n(' ', SPACING));
    }
    text.push('\n');
}

fn write_footer(text: &mut String, sheet: &Sheet<'_>) {
    let total = sheet.time(sheet.self_cpu_total);
    push_line(text, &format!("Self CPU time total: {total}"));
    write_loss(text, sheet.profile);
}

fn write_loss(text: &mut String, profile: &Profile) {
    let loss = profile.loss();
    if loss.total() == 0 {
        return;
    }
    let mut line = format!("Events lost: {}", loss.total());
    for cause in LossCause::ALL {
        let count = loss.count(cause);
        if count > 0 {
            write!(line, ", {count} {}", cause.describe()).expect("a String takes every text");
        }
    }
    push_line(text, &line);
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
