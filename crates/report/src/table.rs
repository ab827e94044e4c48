//! Rows as the text of a table, in torch's layout.
//!
//! A table is a list of columns, each with a header, a width and a function that makes a cell from a
//! row. A new column is a heading and an entry in [`columns`].

use mindprof_analyze::{Analysis, Averages, GroupBy, Metric, Unit};
use mindprof_formats::{Row, RowOptions, event_rows, self_totals};
use mindprof_model::{Loss, LossCause, OperatorLimit};

pub use self::columns::TABLE_COLUMNS;
use self::columns::{Column, shown_columns};
use self::rows::visible_rows;
use crate::error::{Error, Result};
use crate::grid::{characters, push_line, push_wrapped};
use crate::number::{TimeUnit, memory_text, share_text, time_text};

mod columns;
mod rows;
#[cfg(test)]
mod tests;

/// The layout of a table.
///
/// The defaults are torch's, and the result is then laid out exactly like a table of torch. The command
/// line and Python fill this in from their options.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The rows to show.
    pub rows: RowOptions,
    /// The maximum width of the column of source locations.
    pub max_src_column_width: Option<usize>,
    /// The maximum width of the column of names. Longer names are cut.
    pub max_name_column_width: Option<usize>,
    /// The maximum width of the column of input shapes. Longer shapes are cut.
    pub max_shapes_column_width: Option<usize>,
    /// A line of text above the table.
    pub header: Option<String>,
    /// The unit of all times; `None` picks a unit for each time.
    pub time_unit: Option<TimeUnit>,
    /// The columns to show, by their keys in [`TABLE_COLUMNS`]; `None` shows all that the rows have
    /// values for.
    pub columns: Option<Vec<&'static str>>,
    /// The maximum width of the table: columns are narrowed to their contents, and the least
    /// important ones are dropped. `None` keeps torch's layout.
    pub max_width: Option<usize>,
    /// The header of the column of source locations; `None` for torch's. Rows that are grouped by
    /// another property show it there.
    pub source_header: Option<&'static str>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            rows: RowOptions::default(),
            max_src_column_width: Some(75),
            max_name_column_width: Some(55),
            max_shapes_column_width: Some(80),
            header: None,
            time_unit: None,
            columns: None,
            max_width: None,
            source_header: None,
        }
    }
}

/// The properties of the recording that decide which columns a table has.
///
/// They are not derived from the rows, because a recording with memory, for example, has a column for
/// it even if all rows are zero.
#[derive(Clone, Debug, Default)]
pub struct TableFacts {
    /// The name of the device in headers, such as `CUDA`; `None` if only the CPU was recorded.
    pub device: Option<String>,
    /// Whether memory was recorded.
    pub memory: bool,
    /// Whether floating-point operations were counted.
    pub flops: bool,
    /// The events that were lost.
    pub loss: Loss,
    /// The operators that were recorded, if others were left out.
    pub limit: Option<OperatorLimit>,
}

impl TableFacts {
    /// Returns the properties of a profile.
    pub fn of(analysis: &Analysis) -> Self {
        Self {
            device: analysis
                .accelerator()
                .map(|kind| analysis.profile().device_name(kind).to_uppercase()),
            memory: analysis.has_memory(),
            flops: analysis.counts_flops(),
            loss: *analysis.profile().loss(),
            limit: OperatorLimit::read(analysis.profile().metadata()),
        }
    }
}

/// The text of a table without rows.
pub const NO_EVENTS: &str = "No events were recorded.\n";

/// Returns the averages of a profile as a table, or [`NO_EVENTS`] if there are none.
///
/// Each line ends in a line feed. If events were lost, the last line reports how many.
///
/// # Panics
/// Never: a profile knows the device that its device times are of.
pub fn table(
    analysis: &Analysis,
    averages: &Averages,
    group_by: GroupBy,
    options: &TableOptions,
) -> String {
    let rows = options.rows.rows(analysis, averages, group_by);
    table_of_rows(&rows, &TableFacts::of(analysis), options)
        .expect("what has device times has the device's tracks")
}

/// Returns the events of a profile as a table, with a row for each event.
///
/// # Panics
/// Never: a profile knows the device that its device times are of.
pub fn events_table(analysis: &Analysis, options: &TableOptions) -> String {
    table_of_rows(&event_rows(analysis), &TableFacts::of(analysis), options)
        .expect("what has device times has the device's tracks")
}

/// Returns rows as a table, or [`NO_EVENTS`] if there are none.
///
/// # Errors
/// Fails if rows have device times but `facts` does not name the device.
pub fn table_of_rows(
    rows: &[Row<'_>],
    facts: &TableFacts,
    options: &TableOptions,
) -> Result<String> {
    let mut text = String::new();
    if rows.is_empty() {
        text.push_str(NO_EVENTS);
        write_limit(&mut text, facts.limit.as_ref(), options.max_width);
        write_loss(&mut text, &facts.loss, options.max_width);
        return Ok(text);
    }
    let rows = &*visible_rows(rows);
    let sheet = Sheet::new(rows, facts, options)?;
    let columns = shown_columns(&sheet);
    write_heading(&mut text, &columns, options);
    for row in options.rows.shown(rows) {
        write_row(&mut text, &columns, &sheet, row);
    }
    write_separator(&mut text, &columns);
    write_footer(&mut text, &sheet);
    Ok(text)
}

/// The values that cells depend on in addition to their row.
struct Sheet<'a> {
    rows: &'a [Row<'a>],
    facts: &'a TableFacts,
    options: &'a TableOptions,
    self_cpu_total: f64,
    /// The name and the total time of the device, if some row has device time.
    device: Option<(&'a str, f64)>,
    shapes_width: usize,
    source_width: usize,
    /// The unit of FLOPs as a power of a thousand, if some row has FLOPs.
    flops_unit: Option<usize>,
}

impl<'a> Sheet<'a> {
    fn new(rows: &'a [Row<'a>], facts: &'a TableFacts, options: &'a TableOptions) -> Result<Self> {
        let (self_cpu_total, device_total) = self_totals(rows);
        let has_time = |row: &Row<'_>| row.float(Metric::SelfDeviceTimeTotal) > 0.0;
        let device = if rows.iter().any(has_time) {
            let name = facts.device.as_deref().ok_or(Error::UnknownDevice)?;
            Some((name, device_total))
        } else {
            None
        };
        let mut sheet = Self {
            rows,
            facts,
            options,
            self_cpu_total,
            device,
            shapes_width: 0,
            source_width: 0,
            flops_unit: None,
        };
        sheet.measure();
        Ok(sheet)
    }

    /// Computes the widths that depend on the contents of cells, and the unit of FLOPs.
    fn measure(&mut self) {
        let shapes = self.rows.iter().filter_map(|row| row.shapes.as_deref());
        let longest = shapes
            .filter(|text| !NO_SHAPES.contains(text))
            .map(characters);
        self.shapes_width = longest.max().map_or(0, |longest| {
            capped(
                longest + 4,
                self.limit(self.options.max_shapes_column_width),
            )
        });
        let frames = self.rows.iter().flat_map(|row| row.stack.iter());
        self.source_width = frames
            .map(|frame| characters(frame))
            .max()
            .map_or(0, |longest| {
                // File and line are worth two fifths of a narrow table.
                let limit = self.options.max_width.map(|width| width * 2 / 5);
                let own = self.options.max_src_column_width;
                capped(longest + 4, own.into_iter().chain(limit).min())
            });
        if self.facts.flops {
            let flops = self.rows.iter().map(|row| row.float(Metric::Flops));
            let smallest = flops.filter(|&flops| flops > 0.0).min_by(f64::total_cmp);
            // The smallest row decides the unit, so that no row is rounded to zero.
            self.flops_unit =
                smallest.map(|smallest| (smallest.log10() / 3.0).clamp(0.0, 5.0) as usize);
        }
    }

    /// Returns the maximum width of a column of long texts: at most a fifth of the table if its width
    /// is limited.
    fn limit(&self, own: Option<usize>) -> Option<usize> {
        let fifth = self.options.max_width.map(|width| width / 5);
        own.into_iter().chain(fifth).min()
    }

    fn time(&self, microseconds: f64) -> String {
        time_text(microseconds, self.options.time_unit)
    }

    /// Returns the amount of a metric as text.
    fn amount(&self, row: &Row<'_>, metric: Metric) -> String {
        let amount = row.amounts[metric];
        match metric.unit() {
            Unit::Micros => self.time(amount.float()),
            Unit::Bytes => memory_text(amount.whole()),
            Unit::Operations | Unit::Events => amount.whole().to_string(),
        }
    }

    fn share(&self, microseconds: f64) -> String {
        share_text(microseconds, self.self_cpu_total)
    }
}

const SPACING: usize = 2;

/// The texts that mean that there are no shapes.
const NO_SHAPES: [&str; 3] = ["", "[]", "None"];

fn capped(width: usize, limit: Option<usize>) -> usize {
    limit.map_or(width, |limit| width.min(limit))
}

/// Writes a row. If there is a column of source locations, further frames and a blank line follow,
/// unless it has one label for each row.
fn write_row(text: &mut String, columns: &[Column], sheet: &Sheet<'_>, row: &Row<'_>) {
    write_line(text, columns, |column| (column.cell)(sheet, row));
    let is_label = sheet.options.source_header.is_some();
    if is_label || columns.iter().all(|column| column.frame.is_none()) {
        return;
    }
    let further = row.stack.iter().skip(1).map(AsRef::as_ref);
    for frame in further.chain([""]) {
        write_line(text, columns, |column| match column.frame {
            Some(cell) => cell(sheet, frame),
            None => String::new(),
        });
    }
}

fn write_heading(text: &mut String, columns: &[Column], options: &TableOptions) {
    let width: usize = columns.iter().map(|column| column.width + SPACING).sum();
    let rule = "=".repeat(width - SPACING);
    if let Some(header) = &options.header {
        push_line(text, &rule);
        push_line(text, header);
    }
    if options.rows.top_level_events_only {
        push_line(text, &rule);
        push_line(text, "This report only display top-level ops statistics");
    }
    write_separator(text, columns);
    write_line(text, columns, |column| column.header.clone());
    write_separator(text, columns);
}

fn write_separator(text: &mut String, columns: &[Column]) {
    write_line(text, columns, |column| "-".repeat(column.width));
}

fn write_line(text: &mut String, columns: &[Column], cell: impl Fn(&Column) -> String) {
    for column in columns {
        let cell = cell(column);
        let padding = column.width.saturating_sub(characters(&cell));
        let (before, after) = if column.frame.is_some() {
            (0, padding)
        } else {
            (padding, 0)
        };
        text.extend(std::iter::repeat_n(' ', before));
        text.push_str(&cell);
        text.extend(std::iter::repeat_n(' ', after + SPACING));
    }
    text.push('\n');
}

fn write_footer(text: &mut String, sheet: &Sheet<'_>) {
    let total = sheet.time(sheet.self_cpu_total);
    let width = sheet.options.max_width;
    push_wrapped(text, &format!("Self CPU time total: {total}"), width);
    if let Some((device, total)) = sheet.device {
        let total = sheet.time(total);
        push_wrapped(text, &format!("Self {device} time total: {total}"), width);
    }
    write_limit(text, sheet.facts.limit.as_ref(), width);
    write_loss(text, &sheet.facts.loss, width);
}

fn write_limit(text: &mut String, limit: Option<&OperatorLimit>, width: Option<usize>) {
    let Some(limit) = limit else {
        return;
    };
    let rest = match limit.share {
        Some(share) => format!(
            "counts and times are estimates from {}% of the outermost operators, and ± is their \
             margin of error with a probability of 95%",
            share * 100.0
        ),
        None => "the time of other operators belongs to what they ran in".to_owned(),
    };
    push_wrapped(text, &format!("Recorded only: {limit}; {rest}"), width);
}

fn write_loss(text: &mut String, loss: &Loss, width: Option<usize>) {
    if loss.total() == 0 {
        return;
    }
    let causes = loss_texts(loss);
    let line = match &causes[..] {
        [one] => format!("Events lost: {one}"),
        several => format!("Events lost: {}, {}", loss.total(), several.join(", ")),
    };
    push_wrapped(text, &line, width);
}

/// Returns the number of lost events for each cause that there is.
pub(crate) fn loss_texts(loss: &Loss) -> Vec<String> {
    let causes = LossCause::ALL.into_iter();
    let causes = causes.filter(|&cause| loss.count(cause) > 0);
    let text = |cause: LossCause| format!("{} {}", loss.count(cause), cause.describe());
    causes.map(text).collect()
}
