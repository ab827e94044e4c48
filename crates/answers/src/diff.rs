//! The comparison of two profiles: their rows, matched by key and by the shapes of the inputs.
//!
//! The input is two analyses; `mindprof_report` writes the result as text, `mindprof_formats` as
//! JSON, and [`crate::Verdict`] judges it.

use std::borrow::Cow;
use std::cmp::Reverse;

use mindprof_analyze::{Analysis, Average, GroupBy, Sums, dims};
use mindprof_model::{Category, DeviceKind, InputsId, InputsTable, Nanos, Profile};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::completeness::Completeness;
use crate::labels::Label;
use crate::own_code::OwnCode;
use crate::work::Work;

#[cfg(test)]
mod tests;

/// The number that is compared and that rows are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Measure {
    /// The self time, on the CPU or the device that the events ran on.
    #[default]
    SelfTime,
    /// The time including that of the children, on the CPU or the device that the events ran on.
    TotalTime,
    /// The number of events.
    Count,
}

/// The options of a comparison: how rows are matched and ordered, and which events are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// Match rows by the shapes of their inputs too, if both profiles have shapes.
    pub input_shapes: bool,
    /// Match rows by a label of their events too.
    pub label: Option<Label>,
    /// Compare Python function calls too.
    pub python_functions: bool,
    /// The measure that rows are ordered by, the largest change first.
    pub measure: Measure,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            input_shapes: true,
            label: None,
            python_functions: false,
            measure: Measure::SelfTime,
        }
    }
}

/// A row of the comparison: the events of both profiles that match.
///
/// A row that only one profile has is kept too, because new and removed operators are often the
/// explanation of a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The key that the events share, for example `aten::mm`.
    pub key: String,
    /// The kind of device that the events ran on.
    pub device: DeviceKind,
    /// Whether the events are ranges that the user named.
    pub is_annotation: bool,
    /// The dimensions of each input, if rows are matched by shapes.
    pub shapes: Option<Vec<Vec<i64>>>,
    /// The label of the events, if rows are matched by it; empty for events without one.
    pub label: Option<String>,
    /// The sums in the first profile, or `None` if the row is new.
    pub before: Option<Sums>,
    /// The sums in the second profile, or `None` if the row is gone.
    pub after: Option<Sums>,
}

impl Change {
    /// Returns the values of a measure in the first and the second profile. Missing rows are zero.
    pub fn values(&self, measure: Measure) -> (u64, u64) {
        let value = |sums: &Option<Sums>| sums.map_or(0, |sums| self.value(&sums, measure));
        (value(&self.before), value(&self.after))
    }

    /// Returns the value of a measure in the second profile minus that in the first.
    pub fn difference(&self, measure: Measure) -> i64 {
        let (before, after) = self.values(measure);
        after.wrapping_sub(before) as i64
    }

    /// Returns the time on accelerators of the kernels that the row's events and those inside them
    /// launched, in the first and in the second profile. Which of nested operators launches a kernel
    /// differs between backends.
    pub fn device_times(&self) -> [Nanos; 2] {
        [self.before, self.after].map(|sums| sums.unwrap_or_default().device_total)
    }

    /// Returns whether counts and times are the same in both profiles.
    pub fn is_none(&self) -> bool {
        [Measure::SelfTime, Measure::TotalTime, Measure::Count]
            .into_iter()
            .all(|measure| self.difference(measure) == 0)
            && self.before.is_some() == self.after.is_some()
    }

    /// Returns whether the row is a range that the user named, as it appears on a device.
    pub fn is_range_on_device(&self) -> bool {
        self.is_annotation && self.device != DeviceKind::Cpu
    }

    fn value(&self, sums: &Sums, measure: Measure) -> u64 {
        let on_cpu = self.device == DeviceKind::Cpu;
        match measure {
            Measure::SelfTime if on_cpu => sums.self_cpu_total.0,
            Measure::SelfTime => sums.self_device_total.0,
            Measure::TotalTime if on_cpu => sums.cpu_total.0,
            Measure::TotalTime => sums.device_total.0,
            Measure::Count => sums.count,
        }
    }
}

/// A number that describes a profile as a whole, and that can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The CPU time.
    Host,
    /// The device time.
    Devices,
    /// The number of events.
    Events,
}

/// The numbers of one compared profile as a whole.
///
/// A limit on growth is a share of these numbers, so they cover exactly the events that are
/// compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// The number of compared events.
    pub count: u64,
    /// The self CPU time of all compared events, which adds up to the time of the outermost ones.
    pub host: Nanos,
    /// The device time.
    pub device: Nanos,
    /// The duration of the recording.
    pub span: Nanos,
    /// The number of events of the profile, compared or not.
    pub recorded: u64,
    /// The time of imports, which are not compared because they are not work of the program.
    pub imports: Nanos,
}

/// The comparison of two profiles.
///
/// Both profiles are grouped as [`Work`] defines, so that a comparison shows the same rows as a
/// table of either profile. Rows are in a fixed order, whichever profile comes first.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The rows of both, those with the largest change first.
    pub rows: Vec<Change>,
    /// Whether rows are matched by the shapes of their inputs.
    pub by_shapes: bool,
    /// The label that rows are matched by, if there is one.
    pub label: Option<Label>,
    /// Whether calls of Python functions are compared: on request, or because there is nothing else.
    pub python_functions: bool,
    /// The measure that rows are ordered by.
    pub measure: Measure,
    /// The first profile as a whole.
    pub before: Whole,
    /// The second profile as a whole.
    pub after: Whole,
    /// The completeness of the first and of the second profile.
    pub completeness: [Completeness; 2],
    /// The accelerator that each profile was recorded on, if it has one.
    accelerators: [Option<DeviceKind>; 2],
    /// The name of the third-party backend of either profile, such as `npu`.
    backend: Option<String>,
}

impl Diff {
    /// Compares two profiles in time linear in the number of events, and `n log n` in that of rows.
    ///
    /// If only one of them has the shapes of inputs, rows are matched by their keys alone.
    pub fn build(before: &Analysis, after: &Analysis, options: DiffOptions) -> Self {
        let has_shapes = |analysis: &Analysis| !analysis.profile().inputs().is_empty();
        let by_shapes = options.input_shapes && has_shapes(before) && has_shapes(after);
        let python_functions = options.python_functions || are_python_alone([before, after]);
        let group_by = GroupBy {
            input_shapes: by_shapes,
            python_functions,
            stack_frames: usize::from(options.label.is_some()),
        };
        let view = |analysis: &Analysis| {
            let own = OwnCode::of(analysis.profile().metadata(), &[]);
            options.label.map(|label| label.view(analysis, &own))
        };
        let views = [view(before), view(after)];
        let mut rows = Rows::default();
        let labelled = |index: usize, whole| views[index].as_ref().unwrap_or(whole);
        let whole_before = rows.take(labelled(0, before), group_by, |row| &mut row.before);
        let whole_after = rows.take(labelled(1, after), group_by, |row| &mut row.after);
        let mut rows = rows.rows;
        sort(&mut rows, options.measure);
        Self {
            rows,
            by_shapes,
            label: options.label,
            python_functions,
            measure: options.measure,
            before: whole_before,
            after: whole_after,
            completeness: Completeness::of_both(
                [before.profile(), after.profile()],
                python_functions,
            ),
            accelerators: [before.accelerator(), after.accelerator()],
            backend: backend_of(after).or_else(|| backend_of(before)),
        }
    }

    /// Returns the name of a kind of device. A third-party backend has a name of its own, such as
    /// `npu`, if one of the profiles states it.
    pub fn device_name(&self, kind: DeviceKind) -> &str {
        match &self.backend {
            Some(backend) if kind == DeviceKind::PrivateUse1 => backend,
            Some(_) | None => kind.name(),
        }
    }

    /// Returns the accelerators of both profiles if each has another kind. Their kernels and the calls
    /// that launch these have other names then, so that only operators and modules can be compared.
    pub const fn different_accelerators(&self) -> Option<[DeviceKind; 2]> {
        match self.accelerators {
            [Some(before), Some(after)] if before as u8 != after as u8 => Some([before, after]),
            _ => None,
        }
    }

    /// Returns the operators whose kernels took time on an accelerator: those of both profiles first,
    /// each part by falling larger time. Rows of the accelerators themselves are left out.
    pub fn operators_on_devices(&self) -> Vec<&Change> {
        let on_cpu = self.rows.iter().filter(|row| row.device == DeviceKind::Cpu);
        let most = |row: &&Change| {
            let [before, after] = row.device_times();
            before.max(after)
        };
        let mut rows: Vec<&Change> = on_cpu.filter(|row| most(row) > Nanos::ZERO).collect();
        // The order of rows is fixed, and this sort keeps it where times are equal.
        rows.sort_by_key(|row| {
            let is_common = row.before.is_some() && row.after.is_some();
            (!is_common, Reverse(most(row)))
        });
        rows
    }

    /// Returns whether no row changed by the measure of the comparison.
    pub fn is_none(&self) -> bool {
        !self.rows.iter().any(|row| self.is_changed(row))
    }

    /// Returns whether a row changed, is new or is gone: by its count if counts are compared,
    /// otherwise by its count or its times.
    pub fn is_changed(&self, row: &Change) -> bool {
        match self.measure {
            Measure::Count => {
                row.difference(Measure::Count) != 0 || row.before.is_some() != row.after.is_some()
            }
            Measure::SelfTime | Measure::TotalTime => !row.is_none(),
        }
    }

    /// Returns whether the profiles share a row, whatever the shapes of its inputs.
    pub fn has_common_rows(&self) -> bool {
        let place = |row: &Change| (row.key.clone(), row.device);
        let before = self.rows.iter().filter(|row| row.before.is_some());
        let before: FxHashSet<_> = before.map(place).collect();
        let mut after = self.rows.iter().filter(|row| row.after.is_some());
        after.any(|row| before.contains(&place(row)))
    }

    /// Returns the relative growth of the whole, for example 0.05 for five percent. CPU time and
    /// device time are considered separately and the larger growth is returned. Growth from zero is
    /// infinite.
    pub fn growth(&self) -> f64 {
        self.most_grown().1
    }

    /// Returns the number of the whole that grew most, and its relative growth.
    pub fn most_grown(&self) -> (Side, f64) {
        let (before, after) = (&self.before, &self.after);
        let sides = match self.measure {
            Measure::Count => vec![(Side::Events, before.count, after.count)],
            // The self times of all events add up to the times of the outermost ones, so both
            // measures have the same whole.
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

    /// Returns the growth of a row as a share of the first profile as a whole.
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

    /// Returns the row that grew most, or `None` if none grew. Ranges on devices are ignored: they
    /// are not work, and gaps between kernels make them longer.
    pub fn worst(&self) -> Option<&Change> {
        let rows = self.rows.iter().filter(|row| !row.is_range_on_device());
        let grown = rows.map(|row| (row, self.row_growth(row)));
        let grown = grown.filter(|(_, growth)| *growth > 0.0);
        // On a tie the first row wins, which has the largest change.
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

/// Returns whether Python functions are all that can be compared. One side may be empty.
fn are_python_alone(sides: [&Analysis; 2]) -> bool {
    let is_alone = |side: &Analysis| Work::of(side).is_python_alone(side.profile());
    let nothing_else = |side: &&Analysis| is_alone(side) || side.profile().events().is_empty();
    sides.iter().all(nothing_else) && sides.into_iter().any(is_alone)
}

type RowKey = (
    String,
    DeviceKind,
    bool,
    Option<Vec<Vec<i64>>>,
    Option<String>,
);

/// The rows of both profiles, with an index by the fields that they are matched by.
#[derive(Default)]
struct Rows {
    rows: Vec<Change>,
    by_key: FxHashMap<RowKey, usize>,
}

impl Rows {
    /// Adds the rows of one profile to its side, and returns the profile's numbers as a whole.
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
            imports: rows.left_out.import_time(),
            ..Whole::default()
        };
        for average in &rows.averages.rows {
            whole.count += average.sums.count;
            if average.device == DeviceKind::Cpu {
                whole.host = whole.host + average.sums.self_cpu_total;
            } else if !average.is_annotation() {
                // A range on a device covers kernels that are counted already.
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
        let label = average.stack.map(|stack| {
            let frame = profile.stacks().frames(stack).next();
            frame.map_or_else(String::new, |frame| profile.strings().text(frame).into())
        });
        let key = (name, device, is_annotation, shapes, label);
        let next = self.rows.len();
        let index = *self.by_key.entry(key.clone()).or_insert(next);
        if index == next {
            let (key, device, is_annotation, shapes, label) = key;
            self.rows.push(Change {
                key,
                device,
                is_annotation,
                shapes,
                label,
                before: None,
                after: None,
            });
        }
        &mut self.rows[index]
    }
}

/// Sorts rows by the size of the change, then by the larger value, then by the fields that they are
/// matched by, so that the order depends neither on the order of the profiles nor on that of their
/// events. Ranges on devices come last, because they are not work.
/// Returns the name that a profile states for its third-party backend.
fn backend_of(analysis: &Analysis) -> Option<String> {
    let kind = DeviceKind::PrivateUse1;
    let name = analysis.profile().device_name(kind);
    (name != kind.name()).then(|| name.to_owned())
}

fn sort(rows: &mut [Change], measure: Measure) {
    rows.sort_by_cached_key(|row| {
        let (before, after) = row.values(measure);
        let size = (Reverse(before.abs_diff(after)), Reverse(before.max(after)));
        let key = (
            row.key.clone(),
            row.device,
            row.is_annotation,
            row.shapes.clone(),
            row.label.clone(),
        );
        (row.is_range_on_device(), size, key)
    });
}

/// Removes object addresses from the name of a Python function, because they differ between runs:
/// `<built-in method mm of Tensor object at 0x7f12>`.
fn without_address(name: &str) -> Cow<'_, str> {
    const AT: &str = " at 0x";
    let Some((head, tail)) = name.split_once(AT) else {
        return Cow::Borrowed(name);
    };
    let rest = tail.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    Cow::Owned(format!("{head}{}", without_address(rest)))
}

/// Returns the dimensions of each input, which are empty if it is not a tensor.
fn shapes(inputs: &InputsTable, id: InputsId) -> Vec<Vec<i64>> {
    let signed = |dims: &[u64]| dims.iter().map(|&dim| dim as i64).collect();
    inputs
        .inputs(id)
        .map(|input| signed(dims(&input)))
        .collect()
}
