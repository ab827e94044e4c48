//! Events and rows by column: what data frames and column files are made from.
//!
//! Texts are held once each, with a number per item; everything else is plain numbers that can be
//! handed on as they are.

use mindprof_analyze::{
    Amount, Analysis, Average, Averages, Flops, GroupBy, Item, Keys, MEMORY_KEY, Metric,
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

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// A value for each item.
    pub values: Values,
    /// Which values are known, where not all are.
    pub known: Option<Vec<bool>>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Texts: the distinct ones, and which of them each item has.
    Text {
        /// For each item, the position of its text.
        numbers: Vec<i32>,
        /// The distinct texts.
        texts: Vec<String>,
    },
    /// Whole numbers.
    Int(Vec<i64>),
    /// Other numbers. Times are microseconds.
    Float(Vec<f64>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Lists of texts: the distinct ones, and which of them each item has.
    TextLists {
        /// For each item, the position of its list.
        numbers: Vec<i32>,
        /// The distinct lists, as positions of texts.
        lists: Vec<Vec<i32>>,
        /// The distinct texts.
        texts: Vec<String>,
    },
    /// Lists of lists of whole numbers: the distinct ones, and which of them each item has.
    IntLists {
        /// For each item, the position of its list.
        numbers: Vec<i32>,
        /// The distinct lists.
        lists: Vec<Vec<Vec<i64>>>,
    },
}

impl Values {
    /// Returns the number of items.
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

    /// Returns whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns everything that a profile shows, in time order, by column.
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
        // Of memory records it is not known how many operations they are.
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

/// Returns averages by column.
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
    columns
}

fn column(name: &str, values: Values) -> Column {
    Column {
        name: name.into(),
        values,
        known: None,
    }
}

/// The columns that events and rows have alike, while they are filled.
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
    /// Adds an item that shows this many frames of its stack.
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
