//! Events and rows by column: what data frames and column files are made from.
//!
//! Texts are held once each, with a number per item; everything else is plain numbers that can be
//! handed on as they are.

use mindprof_analyze::{
    Amount, Analysis, Average, Averages, Flops, GroupBy, Item, Keys, MEMORY_KEY, Metric,
    Percentiles, Sums, Unit, microseconds, percentiles, shown_frames,
};
use mindprof_model::{InputsId, Nanos, Profile, StackId};
use rustc_hash::FxHashMap;

use crate::device::device_type_name;
use crate::shapes::shapes_text;

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
}

impl Values {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        match self {
            Self::Text { numbers, .. } => numbers.len(),
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
    let (mut thread, mut sequence) = (Vec::new(), Vec::new());
    let (mut start, mut end) = (Vec::new(), Vec::new());
    let mut is_event = Vec::new();
    for item in analysis.items() {
        is_event.push(matches!(item, Item::Event(_)));
        match item {
            Item::Event(id) => {
                let event = profile.event(id);
                let average = Average::of_event(analysis, id, &mut flops);
                let key = Keys::text(profile.name(event));
                shared.add(profile, key, &average, usize::MAX);
                thread.push(i64::from(analysis.thread_number(id)));
                sequence.push(event.sequence().map_or(-1, i64::from));
                start.push(microseconds(event.start));
                end.push(microseconds(event.end()));
            }
            Item::Memory(number) => {
                let record = profile.memory().at(number as usize);
                let average = Average::of_memory(analysis, number);
                shared.add(profile, MEMORY_KEY, &average, 0);
                thread.push(i64::from(analysis.memory_thread_number(&record)));
                sequence.push(-1);
                start.push(microseconds(record.time));
                end.push(microseconds(record.time));
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
    columns.push(column("thread", Values::Int(thread)));
    columns.push(column("start_us", Values::Float(start)));
    columns.push(column("end_us", Values::Float(end)));
    columns.push(column("sequence_nr", Values::Int(sequence)));
    columns
}

/// Returns averages by column.
pub fn average_columns(analysis: &Analysis, averages: &Averages, group_by: GroupBy) -> Vec<Column> {
    let mut shared = SharedColumns::default();
    for row in &averages.rows {
        shared.add(analysis.profile(), &row.key, row, group_by.stack_frames);
    }
    let mut columns = shared.finish();
    let spread = percentiles(analysis, group_by);
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
    shapes: TextColumn,
    stacks: TextColumn,
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
        self.devices.add(device_type_name(average.device));
        let inputs = average.inputs.unwrap_or(InputsId::NONE);
        let shapes = *self.shapes_of.entry(inputs).or_insert_with(|| {
            let text = shapes_text(profile.inputs(), inputs);
            self.shapes.number(if text == "[]" { "" } else { &text })
        });
        self.shapes.numbers.push(shapes);
        let stack = average.stack.unwrap_or(StackId::NONE);
        let stack = *self.stacks_of.entry((stack, frames)).or_insert_with(|| {
            let shown = shown_frames(profile, stack).take(frames);
            let texts: Vec<&str> = shown.map(|frame| profile.strings().text(frame)).collect();
            self.stacks.number(&texts.join(";"))
        });
        self.stacks.numbers.push(stack);
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

/// A column of texts while it is filled.
#[derive(Debug, Default)]
struct TextColumn {
    numbers: Vec<i32>,
    texts: Vec<String>,
    known: FxHashMap<String, i32>,
}

impl TextColumn {
    fn add(&mut self, text: &str) {
        let number = self.number(text);
        self.numbers.push(number);
    }

    fn number(&mut self, text: &str) -> i32 {
        if let Some(&number) = self.known.get(text) {
            return number;
        }
        let number = self.texts.len() as i32;
        self.texts.push(text.into());
        self.known.insert(text.into(), number);
        number
    }

    fn finish(self) -> Values {
        Values::Text {
            numbers: self.numbers,
            texts: self.texts,
        }
    }
}

/// Returns texts as the values of a column.
pub fn text_values<'a>(texts: impl IntoIterator<Item = &'a str>) -> Values {
    let mut column = TextColumn::default();
    for text in texts {
        column.add(text);
    }
    column.finish()
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
