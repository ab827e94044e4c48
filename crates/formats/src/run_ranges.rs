//! The ranges of a run that are not about what its program does: imports and steps.
//!
//! `mindprof run` names them in the metadata of its traces; whoever shows rows of such a trace
//! finds them here, and leaves them out.

use std::convert::Infallible;

use mindprof_analyze::{Amount, Amounts, Metric, microseconds};
use mindprof_model::{Nanos, Profile};
use serde::Deserialize;

use crate::row::Row;

/// The key under which a trace says that it is of a run.
const RUN_KEY: &str = "mindprof_run";

/// What the rows of a run's ranges are called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RunRanges {
    /// Imports of modules, one inside of which no others are.
    pub imports: Vec<String>,
    /// Steps, and what comes before and after them: they lie beside what ran meanwhile.
    pub steps: Vec<String>,
}

impl RunRanges {
    /// Returns what a profile says; none if it is of no run.
    pub fn read(profile: &Profile) -> Option<Self> {
        serde_json::from_str(profile.metadata().get(RUN_KEY)?).ok()
    }

    /// Takes the rows of these ranges out of others, and the time of imports off those that are
    /// left. Returns what it took out.
    ///
    /// `inside` has for each row how long imports took in it.
    pub fn take_from<'a>(&self, rows: &mut Vec<Row<'a>>, inside: &[Nanos]) -> Vec<Row<'a>> {
        for (row, &time) in rows.iter_mut().zip(inside) {
            row.amounts = shortened(&row.amounts, time);
        }
        let (taken, left) = rows.drain(..).partition(|row| {
            self.imports
                .iter()
                .chain(&self.steps)
                .any(|name| *name == row.name)
        });
        *rows = left;
        taken
    }
}

/// Returns amounts whose total time on the host is less by `time`.
fn shortened(amounts: &Amounts, time: Nanos) -> Amounts {
    let shortened = Amounts::read(|metric| {
        Ok::<_, Infallible>(match metric {
            Metric::CpuTimeTotal if time > Nanos::ZERO => {
                let left = amounts[metric].float() - microseconds(time);
                Amount::Float(left.max(0.0))
            }
            metric => amounts[metric],
        })
    });
    let Ok(shortened) = shortened;
    shortened
}

#[cfg(test)]
mod tests {
    use mindprof_analyze::{Analysis, GroupBy, averages, nanoseconds, time_inside};
    use mindprof_model::Timeline;

    use super::*;
    use crate::row::average_rows;

    // main     |--------------------|   0..100
    // import       |--|                 20..30
    // step            |-------------|   30..100
    #[test]
    fn rows_of_imports_and_steps_are_taken_with_their_time() {
        let profile = Timeline::draw(|time| {
            time.scope("main", |time| {
                time.idle(20);
                time.annotation("import a", |time| time.idle(10));
                time.annotation("ProfilerStep#4", |time| time.idle(70));
            });
        });
        let ranges = RunRanges {
            imports: vec!["import a".into()],
            steps: vec!["ProfilerStep*".into()],
        };
        let (analysis, group_by) = (Analysis::build(profile), GroupBy::default());
        let averages = averages(&analysis, group_by);
        let mut rows = average_rows(&analysis, &averages, group_by);
        let inside = time_inside(&analysis, group_by, &["import a"]);
        let taken = ranges.take_from(&mut rows, &inside);
        let names = |rows: &[Row<'_>]| {
            rows.iter()
                .map(|row| row.name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&rows), ["main"]);
        assert_eq!(names(&taken), ["import a", "ProfilerStep*"]);
        let main = &rows[0];
        let times = [
            Metric::CpuTimeTotal,
            Metric::CpuTime,
            Metric::SelfCpuTimeTotal,
        ];
        let times = times.map(|metric| nanoseconds(main.float(metric)).0);
        assert_eq!(times, [90, 90, 20]);
    }

    #[test]
    fn a_profile_of_no_run_has_none() {
        let mut part = mindprof_model::Part::new();
        for (text, expected) in [
            ("1", None),
            ("{\"imports\":[]}", None),
            (
                "{\"imports\":[],\"steps\":[],\"later\":1}",
                Some(RunRanges::default()),
            ),
        ] {
            part.metadata.set(RUN_KEY, text);
            let profile = part.clone().into_profile().unwrap();
            assert_eq!(RunRanges::read(&profile), expected, "{text}");
        }
    }
}
