//! What changed between two profiles: their rows, matched by key and by the shapes of the inputs.
//!
//! Reads two analyses; `formats` makes text and JSON of what comes out.

use std::borrow::Cow;
use std::cmp::Reverse;

use mindprof_analyze::{Analysis, Average, GroupBy, Sums, dims};
use mindprof_model::{Category, DeviceKind, InputsId, InputsTable, Nanos, Profile};
use rustc_hash::FxHashMap;

use crate::work::Work;

#[cfg(test)]
mod tests;

/// What is compared, and what rows are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Measure {
    /// The time without the children, on the host or the device where the events ran.
    #[default]
    SelfTime,
    /// The time, children included, on the host or the device where the events ran.
    TotalTime,
    /// The number of events.
    Count,
}

/// What rows are matched by, and which events are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// Rows of one key are told apart by the shapes of their inputs, where both profiles have any.
    pub input_shapes: bool,
    /// Calls of Python functions are compared too.
    pub python_functions: bool,
    /// What rows are ordered by, the largest change first.
    pub measure: Measure,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            input_shapes: true,
            python_functions: false,
            measure: Measure::SelfTime,
        }
    }
}

/// One row of both profiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The key that the events share.
    pub key: String,
    /// The kind of device they ran on.
    pub device: DeviceKind,
    /// Whether a user named them.
    pub is_annotation: bool,
    /// The dims of each of their inputs, where rows are told apart by them.
    pub shapes: Option<Vec<Vec<i64>>>,
    /// What they came to in the first profile; none where they are new.
    pub before: Option<Sums>,
    /// What they come to in the second profile; none where they are gone.
    pub after: Option<Sums>,
}

impl Change {
    /// Returns a measure of the first and of the second profile. What is not there is zero.
    pub fn values(&self, measure: Measure) -> (u64, u64) {
        let value = |sums: &Option<Sums>| sums.map_or(0, |sums| self.value(&sums, measure));
        (value(&self.before), value(&self.after))
    }

    /// Returns how much more of a measure there is in the second profile.
    pub fn difference(&self, measure: Measure) -> i64 {
        let (before, after) = self.values(measure);
        after.wrapping_sub(before) as i64
    }

    /// Returns whether counts and times are the same in both profiles.
    pub fn is_none(&self) -> bool {
        [Measure::SelfTime, Measure::TotalTime, Measure::Count]
            .into_iter()
            .all(|measure| self.difference(measure) == 0)
            && self.before.is_some() == self.after.is_some()
    }

    /// Returns whether the row is a user's range as a device saw it.
    pub fn is_range_on_device(&self) -> bool {
        self.is_annotation && self.device != DeviceKind::Cpu
    }

    fn value(&self, sums: &Sums, measure: Measure) -> u64 {
        let on_host = self.device == DeviceKind::Cpu;
        match measure {
            Measure::SelfTime if on_host => sums.self_cpu_total.0,
            Measure::SelfTime => sums.self_device_total.0,
            Measure::TotalTime if on_host => sums.cpu_total.0,
            Measure::TotalTime => sums.device_total.0,
            Measure::Count => sums.count,
        }
    }
}

/// What of a whole grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The time of the host's events.
    Host,
    /// The time that devices worked.
    Devices,
    /// The number of events.
    Events,
}

/// What one profile comes to as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// How many events are compared.
    pub count: u64,
    /// The time of the host's events, each without its children: what the outermost ones took.
    pub host: Nanos,
    /// The time that devices worked.
    pub device: Nanos,
    /// How long the window was open.
    pub span: Nanos,
    /// How many events the profile has, compared or not.
    pub recorded: u64,
    /// How long imports took, which are not compared: they are no work of the program.
    pub left_out: Nanos,
}

/// The difference of two profiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The rows of both, those with the largest change first.
    pub rows: Vec<Change>,
    /// Whether rows of one key are told apart by the shapes of their inputs.
    pub by_shapes: bool,
    /// What rows are ordered by.
    pub measure: Measure,
    /// The first profile as a whole.
    pub before: Whole,
    /// The second profile as a whole.
    pub after: Whole,
}

impl Diff {
    /// Compares two profiles. Takes time linear in their events, and `n log n` in their rows.
    ///
    /// If only one of them has the shapes of inputs, rows are matched by their keys alone.
    pub fn build(before: &Analysis, after: &Analysis, options: DiffOptions) -> Self {
        let has_shapes = |analysis: &Analysis| !analysis.profile().inputs().is_empty();
        let by_shapes = options.input_shapes && has_shapes(before) && has_shapes(after);
        let group_by = GroupBy {
            input_shapes: by_shapes,
            python_functions: options.python_functions,
            ..GroupBy::default()
        };
        let mut rows = Rows::default();
        let whole_before = rows.take(before, group_by, |row| &mut row.before);
        let whole_after = rows.take(after, group_by, |row| &mut row.after);
        let mut rows = rows.rows;
        sort(&mut rows, options.measure);
        Self {
            rows,
            by_shapes,
            measure: options.measure,
            before: whole_before,
            after: whole_after,
        }
    }

    /// Returns whether counts and times are the same in both profiles.
    pub fn is_none(&self) -> bool {
        self.rows.iter().all(Change::is_none)
    }

    /// Returns by which part the whole grew: 0.05 for five percent. Of the host's time and the
    /// devices' the one that grew more; from nothing to something is infinite.
    pub fn growth(&self) -> f64 {
        self.most_grown().1
    }

    /// Returns what of the whole grew most, and by which part.
    pub fn most_grown(&self) -> (Side, f64) {
        let (before, after) = (&self.before, &self.after);
        let sides = match self.measure {
            Measure::Count => vec![(Side::Events, before.count, after.count)],
            // The times of all events without their children come to the times of the outermost
            // ones.
            Measure::SelfTime | Measure::TotalTime => vec![
                (Side::Host, before.host.0, after.host.0),
                (Side::Devices, before.device.0, after.device.0),
            ],
        };
        let first = sides[0].0;
        sides
            .into_iter()
            .filter(|&(_, before, after)| (before, after) != (0, 0))
            .map(|(side, before, after)| (side, part(after as f64 - before as f64, before)))
            .reduce(|most, next| if next.1 > most.1 { next } else { most })
            .unwrap_or((first, 0.0))
    }

    /// Returns by which part of the first profile as a whole one row grew.
    pub fn row_growth(&self, row: &Change) -> f64 {
        let whole = match self.measure {
            Measure::Count => self.before.count,
            Measure::SelfTime | Measure::TotalTime if row.device == DeviceKind::Cpu => {
                self.before.host.0
            }
            Measure::SelfTime | Measure::TotalTime => self.before.device.0,
        };
        part(row.difference(self.measure) as f64, whole)
    }

    /// Returns the row that grew most, if one grew: a row of work, not of a user's range as a device
    /// saw it, which is as long as the gaps between kernels make it.
    pub fn worst(&self) -> Option<&Change> {
        let rows = self.rows.iter().filter(|row| !row.is_range_on_device());
        let grown = rows.map(|row| (row, self.row_growth(row)));
        let grown = grown.filter(|(_, growth)| *growth > 0.0);
        // The first of equals: rows are ordered by the size of their change.
        grown
            .reduce(|worst, next| if next.1 > worst.1 { next } else { worst })
            .map(|(row, _)| row)
    }
}

fn part(difference: f64, whole: u64) -> f64 {
    if whole > 0 {
        difference / whole as f64
    } else if difference > 0.0 {
        f64::INFINITY
    } else {
        0.0
    }
}

type RowKey = (String, DeviceKind, bool, Option<Vec<Vec<i64>>>);

/// The rows of both profiles, by what they are matched by.
#[derive(Default)]
struct Rows {
    rows: Vec<Change>,
    by_key: FxHashMap<RowKey, usize>,
}

impl Rows {
    /// Puts the rows of one profile on its side.
    fn take(
        &mut self,
        analysis: &Analysis,
        group_by: GroupBy,
        side: fn(&mut Change) -> &mut Option<Sums>,
    ) -> Whole {
        let work = Work::of(analysis);
        let view = work.view(analysis, group_by);
        let rows = work.averages(view.as_ref().unwrap_or(analysis), group_by);
        let profile = view.as_ref().unwrap_or(analysis).profile();
        let mut whole = Whole {
            recorded: analysis.profile().events().len() as u64,
            span: profile.span(),
            left_out: rows.left_out.import_time(),
            ..Whole::default()
        };
        for average in &rows.averages.rows {
            whole.count += average.sums.count;
            if average.device == DeviceKind::Cpu {
                whole.host = whole.host + average.sums.self_cpu_total;
            } else if !average.is_annotation() {
                // A user's range as a device saw it lies over the kernels in it.
                whole.device = whole.device + average.sums.self_device_total;
            }
            let row = side(self.row(profile, average));
            row.get_or_insert_default().add(&average.sums);
        }
        whole
    }

    fn row(&mut self, profile: &Profile, average: &Average) -> &mut Change {
        let shapes = average
            .inputs
            .map(|inputs| shapes(profile.inputs(), inputs));
        let (device, is_annotation) = (average.device, average.is_annotation());
        let name = if average.category == Category::PythonFunction {
            without_address(&average.key).into_owned()
        } else {
            average.key.clone()
        };
        let key = (name, device, is_annotation, shapes);
        let next = self.rows.len();
        let index = *self.by_key.entry(key.clone()).or_insert(next);
        if index == next {
            let (key, device, is_annotation, shapes) = key;
            self.rows.push(Change {
                key,
                device,
                is_annotation,
                shapes,
                before: None,
                after: None,
            });
        }
        &mut self.rows[index]
    }
}

/// Orders rows so that neither the order of the profiles nor that of their events shows: by the
/// size of the change, then by the larger value, then by what the rows are matched by. Ranges as
/// devices saw them come last: they are no work, and as long as what lies in them.
fn sort(rows: &mut [Change], measure: Measure) {
    rows.sort_by_cached_key(|row| {
        let (before, after) = row.values(measure);
        let size = (Reverse(before.abs_diff(after)), Reverse(before.max(after)));
        let key = (
            row.key.clone(),
            row.device,
            row.is_annotation,
            row.shapes.clone(),
        );
        (row.is_range_on_device(), size, key)
    });
}

/// Returns the name of a Python function without the address of its object, which is another in
/// each run: `<built-in method mm of Tensor object at 0x7f12>`.
fn without_address(name: &str) -> Cow<'_, str> {
    const AT: &str = " at 0x";
    let Some((head, tail)) = name.split_once(AT) else {
        return Cow::Borrowed(name);
    };
    let rest = tail.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    Cow::Owned(format!("{head}{}", without_address(rest)))
}

/// Returns the dims of each input; what is no tensor has none.
fn shapes(inputs: &InputsTable, id: InputsId) -> Vec<Vec<i64>> {
    let signed = |dims: &[u64]| dims.iter().map(|&dim| dim as i64).collect();
    inputs
        .inputs(id)
        .map(|input| signed(dims(&input)))
        .collect()
}
