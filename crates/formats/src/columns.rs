//! Events and averages as columns, from which data frames and Parquet, Arrow and CSV files are made.
//!
//! Texts and lists are dictionary-encoded: each distinct value is stored once, and every row has its
//! index. All other values are plain numbers, which Arrow takes over without a copy.

use mindprof_analyze::{
    Amount, Analysis, Average, Averages, Flops, GroupBy, Item, Keys, MEMORY_KEY, Margin, Metric,
    Percentiles, Sums, Unit, dims, microseconds, shown_frames,
};
use mindprof_model::{InputsId, Nanos, Profile, StackId};
use rustc_hash::FxHashMap;

mod events;
mod texts;

use self::events::EventColumns;
pub use self::events::external_id;
use self::texts::{IntListColumn, TextColumn, TextListColumn};
pub use self::texts::{int_list_values, text_list_values, text_values};

/// One column of a table of events or averages.
///
/// It is the common source of every columnar output: [`record_batch`](crate::record_batch) hands it
/// to Arrow, and the Parquet and CSV writers encode it.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// One value for each row.
    pub values: Values,
    /// For each row, whether its value is known; `None` if all are. An unknown value is null in
    /// Arrow and Parquet.
    pub known: Option<Vec<bool>>,
}

/// The values of a column, one for each row.
///
/// Texts and lists repeat a lot, so the variants that hold them store each distinct value once and
/// refer to it by index.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Dictionary-encoded texts.
    Text {
        /// For each row, the index of its text.
        numbers: Vec<i32>,
        /// The distinct texts.
        texts: Vec<String>,
    },
    /// Integers.
    Int(Vec<i64>),
    /// Floating-point numbers. Times are microseconds.
    Float(Vec<f64>),
    /// Booleans.
    Bool(Vec<bool>),
    /// Dictionary-encoded lists of texts.
    TextLists {
        /// For each row, the index of its list.
        numbers: Vec<i32>,
        /// The distinct lists, as indices of texts.
        lists: Vec<Vec<i32>>,
        /// The distinct texts.
        texts: Vec<String>,
    },
    /// Dictionary-encoded lists of lists of integers.
    IntLists {
        /// For each row, the index of its list.
        numbers: Vec<i32>,
        /// The distinct lists.
        lists: Vec<Vec<Vec<i64>>>,
    },
}

impl Values {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Text { numbers, .. }
            | Self::TextLists { numbers, .. }
            | Self::IntLists { numbers, .. } => numbers.len(),
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Bool(values) => values.len(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the columns of the visible events and memory records of a profile, in time order.
pub fn event_columns(analysis: &Analysis) -> Vec<Column> {
    let profile = analysis.profile();
    let mut flops = Flops::new(profile.strings());
    let mut shared = SharedColumns::default();
    let mut own = EventColumns::new(analysis);
    let mut is_event = Vec::new();
    for item in analysis.items() {
        is_event.push(matches!(item, Item::Event(_)));
        own.add(item);
        match item {
            Item::Event(id) => {
                let average = Average::of_event(analysis, id, &mut flops);
                let key = Keys::text(profile.name(profile.event(id)));
                shared.add(profile, key, &average, usize::MAX);
            }
            Item::Memory(number) => {
                let average = Average::of_memory(analysis, number);
                shared.add(profile, MEMORY_KEY, &average, 0);
            }
        }
    }
    let mut columns = shared.finish();
    if is_event.contains(&false) {
        // The FLOPs of a memory record are unknown rather than zero.
        for column in columns
            .iter_mut()
            .filter(|column| column.name == Metric::Flops.name())
        {
            column.known = Some(is_event.clone());
        }
    }
    columns.extend(own.finish());
    columns
}

/// Returns the columns of averages, including the percentiles of their CPU times and, if they are
/// estimates, their margins of error.
pub fn average_columns(analysis: &Analysis, averages: &Averages, group_by: GroupBy) -> Vec<Column> {
    let mut shared = SharedColumns::default();
    for row in &averages.rows {
        shared.add(analysis.profile(), &row.key, row, group_by.stack_frames);
    }
    let mut columns = shared.finish();
    let spread = averages.percentiles(analysis, group_by);
    let times = |name, of: fn(&Percentiles) -> Nanos| {
        let values = spread.iter().map(|found| microseconds(of(found)));
        column(name, Values::Float(values.collect()))
    };
    columns.push(times("p50", |found| found.p50));
    columns.push(times("p90", |found| found.p90));
    columns.push(times("p99", |found| found.p99));
    columns.push(times("max", |found| found.max));
    columns.extend(margin_columns(averages));
    columns
}

/// Returns the columns of the margins of error, if there are rows that are estimates.
fn margin_columns(averages: &Averages) -> Vec<Column> {
    let known: Vec<bool> = (averages.rows.iter().map(|row| row.margin.is_some())).collect();
    if !known.contains(&true) {
        return Vec::new();
    }
    let margins = |metric: Metric, of: fn(Margin) -> f64| {
        let values = averages.rows.iter();
        let values = values.map(|row| row.margin.map_or(0.0, of));
        Column {
            known: Some(known.clone()),
            ..column(
                &format!("{}_margin", metric.name()),
                Values::Float(values.collect()),
            )
        }
    };
    vec![
        margins(Metric::Count, |margin| margin.count),
        margins(Metric::CpuTimeTotal, |margin| {
            microseconds(margin.cpu_total)
        }),
        margins(Metric::SelfCpuTimeTotal, |margin| {
            microseconds(margin.self_cpu_total)
        }),
    ]
}

fn column(name: &str, values: Values) -> Column {
    Column {
        name: name.into(),
        values,
        known: None,
    }
}

/// A builder of the columns that events and averages have in common.
#[derive(Default)]
struct SharedColumns {
    keys: TextColumn,
    devices: TextColumn,
    shapes: IntListColumn,
    stacks: TextListColumn,
    shapes_of: FxHashMap<InputsId, i32>,
    stacks_of: FxHashMap<(StackId, usize), i32>,
    sums: Vec<Sums>,
    is_async: Vec<bool>,
    is_annotation: Vec<bool>,
}

impl SharedColumns {
    /// Adds a row with at most this many frames of its stack.
    fn add(&mut self, profile: &Profile, key: &str, average: &Average, frames: usize) {
        self.keys.add(key);
        self.devices.add(average.device.type_name());
        let inputs = average.inputs.unwrap_or(InputsId::NONE);
        let shapes = *self.shapes_of.entry(inputs).or_insert_with(|| {
            let inputs = profile.inputs().inputs(inputs);
            let shapes = inputs.map(|input| dims(&input).iter().map(|&dim| dim as i64).collect());
            self.shapes.number(shapes.collect())
        });
        self.shapes.push(shapes);
        let stack = average.stack.unwrap_or(StackId::NONE);
        let stack = *self.stacks_of.entry((stack, frames)).or_insert_with(|| {
            let shown = shown_frames(profile, stack).take(frames);
            let texts = shown.map(|frame| profile.strings().text(frame));
            self.stacks.number(texts)
        });
        self.stacks.push(stack);
        self.sums.push(average.sums);
        self.is_async.push(average.is_async);
        self.is_annotation.push(average.is_annotation());
    }

    fn finish(self) -> Vec<Column> {
        let sums = Metric::SUMS.map(|metric| self.amounts(metric));
        let mut columns = vec![column("key", self.keys.finish())];
        columns.extend(sums);
        columns.extend([
            column("is_async", Values::Bool(self.is_async)),
            column("is_user_annotation", Values::Bool(self.is_annotation)),
            column("device_type", self.devices.finish()),
            column("input_shapes", self.shapes.finish()),
            column("stack", self.stacks.finish()),
        ]);
        columns
    }

    fn amounts(&self, metric: Metric) -> Column {
        let amounts = self.sums.iter().map(|sums| metric.of(sums));
        let values = match metric.unit() {
            Unit::Micros => Values::Float(amounts.map(Amount::float).collect()),
            Unit::Bytes | Unit::Operations | Unit::Events => {
                Values::Int(amounts.map(Amount::whole).collect())
            }
        };
        column(metric.name(), values)
    }
}

#[cfg(test)]
mod tests {
    use mindprof_analyze::averages;
    use mindprof_model::Timeline;

    use super::*;

    fn analysis() -> Analysis {
        // step |-----------|   0..6000
        // mm     |--| |-|      1000..3000, 4000..5000
        Analysis::build(Timeline::draw(|time| {
            time.annotation("step", |time| {
                time.idle(1000);
                time.op("mm", 2000);
                time.idle(1000);
                time.op("mm", 1000);
                time.idle(1000);
            });
        }))
    }

    fn named<'a>(columns: &'a [Column], name: &str) -> &'a Values {
        let found = columns.iter().find(|column| column.name == name);
        &found.unwrap().values
    }

    #[test]
    fn every_event_has_a_value_in_every_column() {
        let columns = event_columns(&analysis());
        assert!(columns.iter().all(|column| column.values.len() == 3));
        assert_eq!(*named(&columns, "key"), text_values(["step", "mm", "mm"]));
        assert_eq!(
            *named(&columns, "self_cpu_time_total"),
            Values::Float(vec![3.0, 2.0, 1.0])
        );
        assert_eq!(
            *named(&columns, "start_us"),
            Values::Float(vec![0.0, 1.0, 4.0])
        );
        let annotations = vec![true, false, false];
        assert_eq!(
            *named(&columns, "is_user_annotation"),
            Values::Bool(annotations)
        );
    }

    #[test]
    fn rows_say_how_their_times_are_spread() {
        let analysis = analysis();
        let group_by = GroupBy::default();
        let columns = average_columns(&analysis, &averages(&analysis, group_by), group_by);
        assert_eq!(*named(&columns, "count"), Values::Int(vec![1, 2]));
        assert_eq!(*named(&columns, "max"), Values::Float(vec![6.0, 2.0]));
        assert_eq!(*named(&columns, "p50"), Values::Float(vec![6.0, 1.0]));
    }
}
