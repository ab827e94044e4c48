//! The rows of a table, with their texts spelled out and their times in microseconds.
//!
//! Rows are built here from averages and events. The Python binding also builds them from event
//! lists that users have edited. Tables and JSON documents are made from rows.

use std::borrow::Cow;
use std::rc::Rc;

use mindprof_analyze::{
    Amounts, Analysis, Average, Averages, Flops, GroupBy, Item, Keys, MEMORY_KEY, Margin, Metric,
    Percentiles, shown_frames,
};
use mindprof_model::{InputsId, StackId};
use rustc_hash::FxHashMap;

use crate::shapes::shapes_text;
use crate::sort::SortBy;

/// One row of a table: an event, or the average of a group of events. Times are microseconds.
///
/// Tables and JSON are made from rows rather than from averages, so that rows that no profile stands
/// behind, such as those of an event list edited in Python, are laid out in the same way.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent property of a row"
)]
pub struct Row<'a> {
    /// The name of the event or group.
    pub name: Cow<'a, str>,
    /// The overload of the operator; empty if rows are not grouped by overload.
    pub overload: Cow<'a, str>,
    /// The amount of every metric.
    pub amounts: Amounts,
    /// The id of the machine, or -1 if there is only one.
    pub node: i64,
    /// The shapes of the inputs as text; `None` if the row has none to show.
    pub shapes: Option<Rc<str>>,
    /// The stack frames of the call, innermost first.
    pub stack: Rc<[Cow<'a, str>]>,
    /// Whether the event ended on a different thread than it started on.
    pub is_async: bool,
    /// Whether the event ran inside another one.
    pub has_parent: bool,
    /// Whether its device time counts towards the total of the device. Annotations and operators do
    /// not, because their device time is that of the kernels in them.
    pub is_device_work: bool,
    /// Whether it is a user annotation on a device track, which spans the work inside it.
    pub is_device_range: bool,
    /// The percentiles of the CPU time; `None` unless they were requested.
    pub percentiles: Option<Percentiles>,
    /// How far the amounts may be off, if they are estimates.
    pub margin: Option<Margin>,
}

impl Row<'_> {
    /// Returns the amount of a metric as a floating-point number.
    pub fn float(&self, metric: Metric) -> f64 {
        self.amounts[metric].float()
    }
}

/// Selects and orders the rows of a table.
///
/// Tables and their JSON share these options, so that both show the same rows. The defaults are
/// torch's: the first hundred rows, in the order in which their events first ran.
#[derive(Clone, Copy, Debug)]
pub struct RowOptions {
    /// The sort key; `None` keeps the order of the rows.
    pub sort_by: Option<SortBy>,
    /// The largest number of rows to show; `None` shows all. Totals and percentages always cover
    /// all rows.
    pub row_limit: Option<usize>,
    /// Whether to omit rows whose first event has a parent.
    pub top_level_events_only: bool,
    /// Whether to compute the percentiles of the CPU times.
    pub percentiles: bool,
    /// Whether user annotations on device tracks come after all other rows, because they are not
    /// work themselves.
    pub device_ranges_last: bool,
}

impl Default for RowOptions {
    fn default() -> Self {
        Self {
            sort_by: None,
            row_limit: Some(100),
            top_level_events_only: false,
            percentiles: false,
            device_ranges_last: false,
        }
    }
}

impl RowOptions {
    /// Returns all averages as rows. Hidden rows are included, because totals are computed from all.
    pub fn rows<'a>(
        &self,
        analysis: &'a Analysis,
        averages: &'a Averages,
        group_by: GroupBy,
    ) -> Vec<Row<'a>> {
        let mut rows = average_rows(analysis, averages, group_by);
        if self.percentiles {
            let spread = averages.percentiles(analysis, group_by);
            for (row, found) in rows.iter_mut().zip(spread) {
                row.percentiles = Some(found);
            }
        }
        rows
    }

    /// Returns the rows to show, in the order in which to show them.
    pub fn shown<'a, 'r>(&self, rows: &'a [Row<'r>]) -> Vec<&'a Row<'r>> {
        let mut rows: Vec<&Row<'r>> = rows.iter().collect();
        if let Some(sort_by) = self.sort_by {
            rows.sort_by(|a, b| sort_by.compare(a, b));
        }
        if self.device_ranges_last {
            rows.sort_by_key(|row| row.is_device_range);
        }
        rows.retain(|row| !(self.top_level_events_only && row.has_parent));
        rows.truncate(self.row_limit.unwrap_or(usize::MAX));
        rows
    }
}

/// Returns the total self CPU time and the total self device time of rows.
pub fn self_totals(rows: &[Row<'_>]) -> (f64, f64) {
    let work = rows.iter().filter(|row| row.is_device_work);
    let cpu = rows.iter().map(|row| row.float(Metric::SelfCpuTimeTotal));
    let device = work.map(|row| row.float(Metric::SelfDeviceTimeTotal));
    (total(cpu), total(device))
}

/// Sums amounts. The sum of nothing is zero; `Iterator::sum` returns a negative zero.
fn total(amounts: impl Iterator<Item = f64>) -> f64 {
    amounts.fold(0.0, |sum, amount| sum + amount)
}

/// Returns averages as rows, in the same order.
pub fn average_rows<'a>(
    analysis: &'a Analysis,
    averages: &'a Averages,
    group_by: GroupBy,
) -> Vec<Row<'a>> {
    let mut texts = Texts::new(analysis, group_by.stack_frames);
    let rows = averages.rows.iter();
    rows.map(|average| texts.row(average, Cow::Borrowed(&average.key)))
        .collect()
}

/// Returns one row for every visible event and memory record of a profile, in time order.
pub fn event_rows(analysis: &Analysis) -> Vec<Row<'_>> {
    let mut texts = Texts::new(analysis, usize::MAX);
    let mut flops = Flops::new(analysis.profile().strings());
    analysis
        .items()
        .map(|item| texts.item_row(item, &mut flops))
        .collect()
}

/// Builds rows and caches their texts, because many rows share a list of shapes or a stack.
struct Texts<'a> {
    analysis: &'a Analysis,
    frames: usize,
    shapes: FxHashMap<InputsId, Rc<str>>,
    stacks: FxHashMap<StackId, Rc<[Cow<'a, str>]>>,
}

impl<'a> Texts<'a> {
    /// Creates a builder of rows that have at most this many frames of each stack.
    fn new(analysis: &'a Analysis, frames: usize) -> Self {
        Self {
            analysis,
            frames,
            shapes: FxHashMap::default(),
            stacks: FxHashMap::default(),
        }
    }

    /// Returns the row of one event or memory record.
    fn item_row(&mut self, item: Item, flops: &mut Flops) -> Row<'a> {
        match item {
            Item::Event(id) => {
                let average = Average::of_event(self.analysis, id, flops);
                let name = self
                    .analysis
                    .profile()
                    .name(self.analysis.profile().event(id));
                self.row(&average, Cow::Borrowed(Keys::text(name)))
            }
            Item::Memory(record) => {
                let average = Average::of_memory(self.analysis, record);
                self.row(&average, Cow::Borrowed(MEMORY_KEY))
            }
        }
    }

    fn row(&mut self, average: &Average, name: Cow<'a, str>) -> Row<'a> {
        let shapes = average.inputs.map(|inputs| self.shapes(inputs));
        Row {
            name,
            overload: Cow::Borrowed(""),
            amounts: average.sums.into(),
            node: -1,
            shapes,
            stack: self.stack(average.stack.unwrap_or(StackId::NONE)),
            is_async: average.is_async,
            has_parent: !average.is_top_level,
            is_device_work: average.device.is_device_work() && !average.is_annotation(),
            is_device_range: average.device.is_device_work() && average.is_annotation(),
            percentiles: None,
            margin: average.margin,
        }
    }

    fn shapes(&mut self, inputs: InputsId) -> Rc<str> {
        let make = || shapes_text(self.analysis.profile().inputs(), inputs).into();
        Rc::clone(self.shapes.entry(inputs).or_insert_with(make))
    }

    fn stack(&mut self, stack: StackId) -> Rc<[Cow<'a, str>]> {
        let profile = self.analysis.profile();
        let make = || {
            let frames = shown_frames(profile, stack).take(self.frames);
            frames
                .map(|frame| Cow::Borrowed(profile.strings().text(frame)))
                .collect()
        };
        Rc::clone(self.stacks.entry(stack).or_insert_with(make))
    }
}
