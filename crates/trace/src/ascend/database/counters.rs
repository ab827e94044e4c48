//! `TASK_PMU_INFO`: the hardware counters of tasks.
//!
//! There is a row for each counter of each task, so that this is often the largest table by far. Rows
//! of a task follow each other.

use std::fmt::Write;

use mindprof_model::{PackedTexts, StringId, TextId};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::DatabaseReading;
use super::connection::{integer, number};
use crate::error::Result;

const COLUMNS: [&str; 4] = ["globalTaskId", "name", "value", "timestampNs"];

/// Larger tables are left out: reading so many rows takes about as long as everything else.
const MOST_ROWS: usize = 10_000_000;

/// The counters of tasks, as entries of JSON objects.
#[derive(Default)]
pub(super) struct Counters {
    groups: Vec<Group>,
    texts: PackedTexts,
}

/// Counters of one task that were read at the same time.
#[derive(Clone, Copy, Debug)]
struct Group {
    task: i64,
    /// The time of the task, in versions that write it.
    time: Option<i64>,
    text: TextId,
    /// Whether a counter occurs twice, as if several runs were one.
    has_repeated_names: bool,
}

impl Counters {
    /// Returns the counters of a task with a comma behind each, or an empty text if there are none.
    ///
    /// Graphs that run several times have the same tasks each time. The time of the counters tells
    /// which run they are of; without it, they are of none.
    pub(super) fn of(&self, task: i64, start_ns: Option<i64>, end_ns: Option<i64>) -> String {
        let begin = self.groups.partition_point(|group| group.task < task);
        let of_task = self.groups[begin..].iter();
        let of_task = of_task.take_while(|group| group.task == task);
        let (start, end) = (start_ns.unwrap_or(i64::MAX), end_ns.unwrap_or(i64::MIN));
        let is_meant = |time: i64| start <= time && time <= end;
        let meant = of_task.filter(|group| group.time.is_none_or(is_meant));
        let meant: Vec<&Group> = meant.collect();
        let texts = meant.iter().map(|group| self.texts.text(group.text));
        let entries: String = texts.collect();
        let is_clear = match meant.as_slice() {
            [] => true,
            [one] => !one.has_repeated_names,
            _ => !has_repeated_keys(&entries),
        };
        if is_clear { entries } else { String::new() }
    }

    /// Adds the counters of a task, and begins the next ones.
    fn add(&mut self, open: &mut OpenGroup) {
        if let Some((task, time)) = open.place
            && !open.entries.is_empty()
            && let Some(text) = self.texts.add(&open.entries)
        {
            open.names.sort_unstable();
            self.groups.push(Group {
                task,
                time,
                text,
                has_repeated_names: open.names.windows(2).any(|two| two[0] == two[1]),
            });
        }
        open.entries.clear();
        open.names.clear();
    }
}

/// The counters of a task as its rows come.
#[derive(Default)]
struct OpenGroup {
    place: Option<(i64, Option<i64>)>,
    entries: String,
    names: Vec<StringId>,
}

/// Returns whether a key occurs twice in some entries, which have a comma behind each.
fn has_repeated_keys(entries: &str) -> bool {
    let object = format!("{{{}}}", entries.trim_end_matches(','));
    let keys = serde_json::from_str::<Map<String, Value>>(&object).map_or(0, |keys| keys.len());
    // Every value is a number, so that each entry has one comma.
    keys < entries.matches(',').count()
}

impl DatabaseReading<'_> {
    /// Reads the counters of all tasks, if arguments are kept.
    pub(super) fn read_counters(&mut self) -> Result<Counters> {
        let mut counters = Counters::default();
        let database = self.database;
        if !self.keeps_arguments || database.columns("TASK_PMU_INFO")?.is_empty() {
            return Ok(counters);
        }
        let rows = database.most_rows("TASK_PMU_INFO")?;
        if rows > MOST_ROWS {
            self.left_out.push(format!(
                "left out the hardware counters: TASK_PMU_INFO has {rows} rows, and up to {MOST_ROWS} are read"
            ));
            return Ok(counters);
        }
        let mut open = OpenGroup::default();
        let mut keys: FxHashMap<StringId, String> = FxHashMap::default();
        database.each_row("TASK_PMU_INFO", &COLUMNS, |row| {
            let (Some(task), Some(value)) = (integer(row, 0)?, number(row, 2)?) else {
                return Ok(());
            };
            let place = Some((task, integer(row, 3)?));
            if open.place != place {
                counters.add(&mut open);
                open.place = place;
            }
            let strings = &mut self.assembly.part.strings;
            let name = self.names.string(row, 1, strings)?;
            let key = keys.entry(name);
            let key = key.or_insert_with(|| Value::from(strings.text(name)).to_string());
            open.names.push(name);
            // Writing to a text does not fail.
            let _ = write!(open.entries, "{key}:{value},");
            Ok(())
        })?;
        counters.add(&mut open);
        counters
            .groups
            .sort_by_key(|group| (group.task, group.time));
        Ok(counters)
    }
}
