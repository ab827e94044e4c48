//! Rows as tables show them: texts and microseconds.
//!
//! Made from the engine's averages and events, or by whoever has rows of another kind.

use std::borrow::Cow;
use std::rc::Rc;

use mindprof_analyze::{
    Amounts, Analysis, Average, Averages, Flops, GroupBy, Item, Keys, MEMORY_KEY, Metric,
    Percentiles, shown_frames,
};
use mindprof_model::{InputsId, StackId};
use rustc_hash::FxHashMap;

use crate::shapes::shapes_text;
use crate::sort::SortBy;

/// One row of a table. Times are microseconds.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing of a row, and any of them may go together"
)]
pub struct Row<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// Which of the operators of that name it is.
    pub overload: Cow<'a, str>,
    /// How much there is of every metric.
    pub amounts: Amounts,
    /// The machine, -1 where there is but one.
    pub node: i64,
    /// The shapes of the inputs as text; empty where there are none to show.
    pub shapes: Option<Rc<str>>,
    /// The frames it was called from, innermost first.
    pub stack: Rc<[Cow<'a, str>]>,
    /// Whether it ended on another thread than it began on.
    pub is_async: bool,
    /// Whether it ran inside of another.
    pub has_parent: bool,
    /// Whether its device time is part of the device's total: it is no annotation and no operator.
    pub is_device_work: bool,
    /// Whether it is a user's range as a device saw it, which lies over the work in it.
    pub is_device_range: bool,
    /// How the times on the host are spread.
    pub percentiles: Option<Percentiles>,
}

impl Row<'_> {
    /// Returns how much there is of a metric.
    pub fn float(&self, metric: Metric) -> f64 {
        self.amounts[metric].float()
    }
}

/// Which rows there are, and in which order. The defaults are torch's.
#[derive(Clone, Copy, Debug)]
pub struct RowOptions {
    /// What the rows are sorted by; none keeps their order.
    pub sort_by: Option<SortBy>,
    /// How many rows are shown; none shows all. Totals and shares always cover all.
    pub row_limit: Option<usize>,
    /// Rows whose first event has a parent are left out.
    pub top_level_events_only: bool,
    /// Rows say how times are spread.
    pub percentiles: bool,
    /// Users' ranges as devices saw them come after all others: they are no work.
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
    /// Returns averages as rows: all of them, since totals are made of all.
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

    /// Returns the rows that are shown, in their order.
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

/// Returns what rows come to on the host and on devices, each without the children.
pub fn self_totals(rows: &[Row<'_>]) -> (f64, f64) {
    let work = rows.iter().filter(|row| row.is_device_work);
    let host = rows.iter().map(|row| row.float(Metric::SelfCpuTimeTotal));
    let device = work.map(|row| row.float(Metric::SelfDeviceTimeTotal));
    (total(host), total(device))
}

/// Returns a sum that is zero where there is nothing: that of the library is a negative zero.
fn total(amounts: impl Iterator<Item = f64>) -> f64 {
    amounts.fold(0.0, |sum, amount| sum + amount)
}

/// Returns averages as rows.
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

/// Returns one row for everything that a profile shows, in time order.
pub fn event_rows(analysis: &Analysis) -> Vec<Row<'_>> {
    let mut texts = Texts::new(analysis, usize::MAX);
    let mut flops = Flops::new(analysis.profile().strings());
    analysis
        .items()
        .map(|item| texts.item_row(item, &mut flops))
        .collect()
}

/// Makes the texts of rows, each distinct one once.
#[derive(Debug)]
pub struct Texts<'a> {
    analysis: &'a Analysis,
    frames: usize,
    shapes: FxHashMap<InputsId, Rc<str>>,
    stacks: FxHashMap<StackId, Rc<[Cow<'a, str>]>>,
}

impl<'a> Texts<'a> {
    /// Prepares to make rows that show this many frames of a stack.
    pub fn new(analysis: &'a Analysis, frames: usize) -> Self {
        Self {
            analysis,
            frames,
            shapes: FxHashMap::default(),
            stacks: FxHashMap::default(),
        }
    }

    /// Returns the row of one thing that the profile shows.
    pub fn item_row(&mut self, item: Item, flops: &mut Flops) -> Row<'a> {
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
