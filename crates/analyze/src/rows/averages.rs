//! Rows of a table: events grouped by key, with their sums.
//!
//! The input is an [`Analysis`]; the output becomes tables, JSON, data frames and the rows of
//! `key_averages()` in Python.

use mindprof_model::{Category, DeviceKind, EventId, Flags, InputsId, Nanos, ScopeKind, StackId};

use self::columns::Columns;
use self::groups::{Groups, is_left_out};
use self::recursion::OutermostCalls;
use crate::analysis::is_annotation;
use crate::analysis::{Analysis, Item};
use crate::memory::memory_use::Bytes;
use crate::rows::estimates::{Estimates, Margin};
use crate::rows::flops::Flops;
use crate::rows::keys::{Keys, MEMORY_KEY};
use crate::rows::sums::Sums;

mod columns;
mod groups;
mod percentiles;
mod recursion;
#[cfg(test)]
mod tests;
mod time_inside;

pub use groups::GroupBy;
pub use percentiles::{Percentiles, ToldPercentile, percentiles};
pub use time_inside::time_inside;

/// One row of a table: the sums of all events that share a key and a kind of device, like an entry
/// of torch's `key_averages()`.
///
/// torch fills a row's descriptive fields from the first event that it meets and keeps ranges named
/// by the user apart from everything else, so this type does the same. [`averages`] creates rows of
/// groups, [`Self::of_event`] and [`Self::of_memory`] rows of single entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Average {
    /// The key that the events share, for example `aten::mm`.
    pub key: String,
    /// The sums over the events.
    pub sums: Sums,
    /// The first event, which describes the row where the events differ. `None` for a sum of rows.
    pub first: Option<EventId>,
    /// The kind of device that the events ran on.
    pub device: DeviceKind,
    /// The category of the first event. Annotations never share a row with other categories.
    pub category: Category,
    /// The kind of scope that the first event is.
    pub scope: ScopeKind,
    /// Whether the first event ended on a thread other than the one it began on.
    pub is_async: bool,
    /// Whether the first event has no parent.
    pub is_top_level: bool,
    /// The inputs whose shapes all events share, if rows are grouped by shapes.
    pub inputs: Option<InputsId>,
    /// The stack whose innermost frames all events share, if rows are grouped by stacks.
    pub stack: Option<StackId>,
    /// How far the sums may be off, if they are estimates.
    pub margin: Option<Margin>,
}

impl Average {
    /// Returns a row whose sums are all zero.
    fn zero(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            sums: Sums::default(),
            first: None,
            device: DeviceKind::Cpu,
            category: Category::Operator,
            scope: ScopeKind::Function,
            is_async: false,
            is_top_level: true,
            inputs: None,
            stack: None,
            margin: None,
        }
    }

    /// Returns the row of a single event. Its key is left empty; use the event's name.
    pub fn of_event(analysis: &Analysis, id: EventId, flops: &mut Flops) -> Self {
        let event = analysis.profile().event(id);
        let mut row = Self {
            inputs: Some(event.inputs),
            stack: Some(analysis.stack(id)),
            ..described(analysis, id, String::new())
        };
        row.sums
            .add_event(analysis, Columns::of(analysis), id, flops);
        row
    }

    /// Returns the row of a single memory record.
    pub fn of_memory(analysis: &Analysis, record: u32) -> Self {
        let mut row = Self::zero(MEMORY_KEY);
        row.add_memory(analysis, record);
        row
    }

    fn add_memory(&mut self, analysis: &Analysis, record: u32) {
        let bytes = Bytes::of(&analysis.profile().memory().at(record as usize));
        self.sums.add(&Sums {
            count: 1,
            memory: bytes,
            self_memory: bytes,
            ..Sums::default()
        });
    }
}

/// The rows of a profile, in the start order of their first events.
///
/// [`averages`] creates them. A caller that removes rows, such as those of steps and imports,
/// notes their positions in [`Self::taken_out`], so that [`Self::percentiles`] still finds the
/// times of the remaining ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Averages {
    /// The rows.
    pub rows: Vec<Average>,
    /// The positions of removed rows in the complete grouping, in ascending order.
    pub taken_out: Vec<usize>,
}

impl Averages {
    /// Returns the self CPU time of all rows together.
    pub fn self_cpu_total(&self) -> Nanos {
        Nanos(self.rows.iter().map(|row| row.sums.self_cpu_total.0).sum())
    }

    /// Returns the percentiles of each row's CPU times. `group_by` must be the grouping that the
    /// rows were made with.
    pub fn percentiles(&self, analysis: &Analysis, group_by: GroupBy) -> Vec<Percentiles> {
        let mut found = percentiles(analysis, group_by);
        for &position in self.taken_out.iter().rev() {
            found.remove(position);
        }
        found
    }

    /// Returns a row with the key `Total` that sums all rows; it is all zeros if there are none.
    pub fn total(&self) -> Average {
        let mut total = Average::zero("Total");
        for row in &self.rows {
            total.sums.add(&row.sums);
        }
        total
    }
}

/// Groups everything that a profile shows: its events, and memory records that lie inside no event.
pub fn averages(analysis: &Analysis, group_by: GroupBy) -> Averages {
    // Usually nothing is hidden, and the filter can be skipped.
    if analysis.shows_every_event() {
        let ids = (0..analysis.profile().events().len()).map(EventId::from_index);
        return averages_of(analysis, ids.map(Item::Event), group_by);
    }
    averages_of(analysis, analysis.items(), group_by)
}

/// Groups some of the entries that a profile shows.
pub fn averages_of(
    analysis: &Analysis,
    items: impl IntoIterator<Item = Item>,
    group_by: GroupBy,
) -> Averages {
    let mut groups = Groups::new(analysis, group_by);
    let mut flops = Flops::new(analysis.profile().strings());
    let columns = Columns::of(analysis);
    let mut rows: Vec<Average> = Vec::new();
    let mut memory_row = None;
    let mut outermost = OutermostCalls::default();
    let mut estimates = Estimates::of(analysis);
    for item in items {
        match item {
            Item::Event(id) => {
                let event = analysis.profile().event(id);
                if is_left_out(event, group_by) {
                    continue;
                }
                let row = groups.row_of(analysis, id, event, rows.len());
                if row == rows.len() {
                    rows.push(first_row(analysis, id, group_by));
                }
                let sums = &mut rows[row].sums;
                let before = estimates.is_some().then_some(*sums);
                if outermost.is_inside(event, row) {
                    sums.add_inner_call(analysis, columns, id, &mut flops);
                } else {
                    sums.add_event(analysis, columns, id, &mut flops);
                }
                if let (Some(estimates), Some(before)) = (&mut estimates, before) {
                    estimates.add(analysis, id, row, [&before, sums]);
                }
            }
            Item::Memory(record) => {
                let row = *memory_row.get_or_insert(rows.len());
                if row == rows.len() {
                    rows.push(Average {
                        inputs: group_by.input_shapes.then_some(InputsId::NONE),
                        stack: (group_by.stack_frames > 0).then_some(StackId::NONE),
                        ..Average::zero(MEMORY_KEY)
                    });
                }
                rows[row].add_memory(analysis, record);
            }
        }
    }
    if let Some(estimates) = estimates {
        estimates.apply(&mut rows);
    }
    Averages {
        rows,
        taken_out: Vec::new(),
    }
}

/// Returns the row that an event opens, before the event itself is counted.
fn first_row(analysis: &Analysis, first: EventId, group_by: GroupBy) -> Average {
    let profile = analysis.profile();
    let event = profile.event(first);
    Average {
        inputs: group_by.input_shapes.then_some(event.inputs),
        stack: (group_by.stack_frames > 0).then(|| analysis.stack(first)),
        ..described(analysis, first, Keys::text(profile.name(event)).into())
    }
}

/// Returns a row of zeros with the description of an event.
fn described(analysis: &Analysis, first: EventId, key: String) -> Average {
    let event = analysis.profile().event(first);
    Average {
        first: Some(first),
        device: analysis.device(first),
        category: event.category,
        scope: event.scope,
        is_async: event.flags.contains(Flags::ASYNC),
        is_top_level: analysis.tree().parent(first).is_none(),
        ..Average::zero(key)
    }
}

impl Average {
    /// Returns whether the events are ranges that the user named.
    pub fn is_annotation(&self) -> bool {
        is_annotation(self.category)
    }
}
