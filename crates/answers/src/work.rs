//! The events that count as work of the program, and their rows.
//!
//! A trace of `mindprof run` contains ranges that describe the run ([`SideRanges`]). Its rows omit
//! them, subtract the time of imports from the rows around them, and add the time of Python calls
//! to the ranges around those. In any other profile everything is work.

use mindprof_analyze::{
    Analysis, Average, Averages, GroupBy, Keys, averages, stacks_without_calls, time_inside,
    without_calls,
};
use mindprof_model::{Category, Nanos, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::questions::micros;
use crate::side_ranges::{IMPORT_PREFIX, SideRanges};

/// The definition of work for one profile.
///
/// Everything that shows rows, totals or shares of a profile uses it, so that all of them agree.
#[derive(Clone, Debug, Default)]
pub struct Work {
    side: Option<SideRanges>,
}

/// The rows of a profile's work, and the rows that were left out.
#[derive(Clone, Debug, Default)]
pub struct WorkRows {
    /// The rows of the work.
    pub averages: Averages,
    /// The rows of side ranges.
    pub left_out: LeftOut,
}

/// The rows of a profile that are not work.
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    /// The rows of imports, one for each module.
    pub imports: Vec<Average>,
    /// The rows of steps, and of the ranges before and after them.
    pub steps: Vec<Average>,
}

impl LeftOut {
    /// Returns all rows that were left out.
    pub fn rows(&self) -> impl Iterator<Item = &Average> {
        self.imports.iter().chain(&self.steps)
    }

    /// Returns whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.imports.is_empty() && self.steps.is_empty()
    }

    /// Returns the self time of all imports.
    pub fn import_time(&self) -> Nanos {
        let imports = self.imports.iter();
        Nanos(imports.map(|row| row.sums.self_cpu_total.0).sum())
    }

    /// Returns the import time of each module, longest first.
    pub fn import_times(&self) -> Vec<ImportTime> {
        let mut modules: FxHashMap<&str, Nanos> = FxHashMap::default();
        for row in &self.imports {
            let module = row.key.strip_prefix(IMPORT_PREFIX).unwrap_or(&row.key);
            let time = modules.entry(module).or_default();
            *time = *time + row.sums.self_cpu_total;
        }
        let mut times: Vec<ImportTime> = modules
            .into_iter()
            .map(|(module, time)| ImportTime {
                module: module.into(),
                time,
            })
            .collect();
        times.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.module.cmp(&b.module)));
        times
    }

    /// Returns the number of step ranges.
    pub fn step_ranges(&self) -> u64 {
        self.steps.iter().map(|row| row.sums.count).sum()
    }
}

/// The time that imports of one module took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportTime {
    /// The name of the module.
    pub module: String,
    /// The self time of its imports.
    pub time: Nanos,
}

/// The totals of a profile's work, and of the ranges that its rows leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkTotals {
    /// The self CPU time of all rows.
    #[serde(rename = "self_cpu_time_total", serialize_with = "micros")]
    pub self_cpu: Nanos,
    /// The totals of the ranges that are left out.
    pub left_out: LeftOutTotals,
}

/// The totals of the ranges that the rows of a profile leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOutTotals {
    /// The self CPU time of imports.
    #[serde(rename = "imports_us", serialize_with = "micros")]
    pub imports: Nanos,
    /// The number of step ranges.
    pub step_ranges: u64,
}

impl WorkTotals {
    /// Sums up the rows of a profile's work.
    pub fn build(analysis: &Analysis, work: &Work) -> Self {
        let group_by = work.grouping(analysis.profile());
        let view = work.view(analysis, group_by);
        let rows = work.averages(view.as_ref().unwrap_or(analysis), group_by);
        Self {
            self_cpu: rows.averages.self_cpu_total(),
            left_out: LeftOutTotals {
                imports: rows.left_out.import_time(),
                step_ranges: rows.left_out.step_ranges(),
            },
        }
    }
}

impl Work {
    /// Reads from the metadata of a profile what counts as work.
    pub fn of(analysis: &Analysis) -> Self {
        Self {
            side: SideRanges::read(analysis.profile()),
        }
    }

    /// Counts every range as work, whatever the metadata of the profile lists.
    pub const fn all() -> Self {
        Self { side: None }
    }

    /// Counts everything but these ranges as work.
    pub const fn without(side: SideRanges) -> Self {
        Self { side: Some(side) }
    }

    /// Returns the ranges that are left out, or `None` if the profile is not of a run.
    pub const fn side_ranges(&self) -> Option<&SideRanges> {
        self.side.as_ref()
    }

    /// Returns the analysis that rows of this grouping must be made from, or `None` if that is
    /// `analysis` itself.
    ///
    /// In a run, Python function calls are removed unless they get rows, so that the self time of a
    /// range includes the Python code in it.
    pub fn view(&self, analysis: &Analysis, group_by: GroupBy) -> Option<Analysis> {
        if self.side.is_none() || group_by.python_functions {
            return None;
        }
        Some(Analysis::build(if group_by.stack_frames > 0 {
            stacks_without_calls(analysis)
        } else {
            without_calls(analysis.profile())
        }))
    }

    /// Groups the work of a profile. `analysis` must be the one that [`Self::view`] returned, or
    /// the profile's own if that was `None`.
    pub fn averages(&self, analysis: &Analysis, group_by: GroupBy) -> WorkRows {
        let mut all = averages(analysis, group_by);
        let Some(side) = &self.side else {
            return WorkRows {
                averages: all,
                left_out: LeftOut::default(),
            };
        };
        let imports: Vec<&str> = side.imports.iter().map(String::as_str).collect();
        let inside = time_inside(analysis, group_by, &imports);
        for (row, time) in all.rows.iter_mut().zip(inside) {
            row.sums.take_cpu_time(time);
        }
        let imports: FxHashSet<&str> = imports.into_iter().collect();
        let steps: FxHashSet<&str> = side.steps.iter().map(String::as_str).collect();
        let mut rows = WorkRows::default();
        for (position, row) in all.rows.into_iter().enumerate() {
            let list = match row.key.as_str() {
                key if imports.contains(key) => &mut rows.left_out.imports,
                key if steps.contains(key) => &mut rows.left_out.steps,
                _ => {
                    rows.averages.rows.push(row);
                    continue;
                }
            };
            list.push(row);
            rows.averages.taken_out.push(position);
        }
        rows
    }

    /// Returns how rows are grouped by default: Python functions get rows only if
    /// there is nothing else to show.
    pub fn grouping(&self, profile: &Profile) -> GroupBy {
        GroupBy {
            python_functions: self.is_python_alone(profile),
            ..GroupBy::default()
        }
    }

    /// Returns whether Python function calls are all that a profile can show: it has no operators
    /// and no device work, and in a run no ranges of the program either.
    pub fn is_python_alone(&self, profile: &Profile) -> bool {
        let Some(side) = &self.side else {
            return is_python_alone(profile);
        };
        let keys: FxHashSet<&str> = side.keys().collect();
        let is_side = |name: &str| keys.contains(Keys::text(name));
        let side: Vec<bool> = profile.strings().iter().map(is_side).collect();
        let mut ranges = profile
            .events()
            .iter()
            .filter(|event| event.category == Category::Annotation && !side[event.name.index()]);
        is_python_alone(profile) && ranges.next().is_none()
    }
}

/// Returns whether a profile has Python function calls, but no operators and no device work.
pub fn is_python_alone(profile: &Profile) -> bool {
    let has = |categories: &[Category]| {
        let mut events = profile.events().iter();
        events.any(|event| categories.contains(&event.category))
    };
    let work = [Category::Operator, Category::Runtime, Category::Kernel];
    has(&[Category::PythonFunction]) && !has(&work)
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    fn keys<'a>(rows: impl IntoIterator<Item = &'a Average>) -> Vec<&'a str> {
        rows.into_iter().map(|row| row.key.as_str()).collect()
    }

    // main     |--------------------|   0..100
    // import       |--|                 20..30
    // step            |-------------|   30..100
    #[test]
    fn imports_and_steps_are_left_out_with_their_time() {
        let profile = Timeline::draw(|time| {
            time.scope("main", |time| {
                time.idle(20);
                time.annotation("import a", |time| time.idle(10));
                time.annotation("ProfilerStep#4", |time| time.idle(70));
            });
        });
        let work = Work::without(SideRanges {
            imports: vec!["import a".into()],
            steps: vec!["ProfilerStep*".into()],
            ..SideRanges::default()
        });
        let analysis = Analysis::build(profile);
        let rows = work.averages(&analysis, GroupBy::default());
        assert_eq!(keys(&rows.averages.rows), ["main"]);
        assert_eq!(keys(rows.left_out.rows()), ["import a", "ProfilerStep*"]);
        assert_eq!(rows.averages.taken_out, [1, 2]);
        let main = &rows.averages.rows[0].sums;
        assert!((main.cpu_micros - 0.09).abs() < 1e-9);
        assert_eq!(
            (main.cpu_total, main.self_cpu_total),
            (Nanos(90), Nanos(20))
        );
        assert_eq!(rows.left_out.import_time(), Nanos(10));
        assert_eq!(rows.left_out.step_ranges(), 1);
    }

    #[test]
    fn a_profile_that_is_not_of_a_run_is_all_work() {
        let profile = Timeline::draw(|time| {
            time.annotation("import a", |time| time.op("aten::mm", 10));
        });
        let analysis = Analysis::build(profile);
        let work = Work::of(&analysis);
        let rows = work.averages(&analysis, GroupBy::default());
        assert_eq!(keys(&rows.averages.rows), ["import a", "aten::mm"]);
        assert!(rows.left_out.is_empty());
        assert!(work.view(&analysis, GroupBy::default()).is_none());
    }
}
