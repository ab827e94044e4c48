//! The report of `mindprof run` about one window.
//!
//! The launcher, written in Python, passes the times that it noted; the engine draws the
//! conclusions.

use std::sync::Arc;

use mindprof_answers::{
    RUN_KEY, RunMarks, RunReport as Report, SideRanges, Span, Work, WorkersStart,
};
use mindprof_model::Nanos;
use mindprof_report::{RunOptions, run_facts, run_hints};
use pyo3::prelude::*;

use crate::analyzed::Analyzed;
use crate::averages::Averages;
use crate::enter::Enter;
use crate::error::Error;
use crate::from_dict::from_dict;
use crate::profile::Profile;

/// Begin and end of a span, in nanoseconds since the Unix epoch.
type UnixSpan = (u64, u64);

from_dict! {
    /// The launcher's marks, as a dict. Times are nanoseconds since the Unix epoch.
    pub(crate) struct Marks {
        /// The end of the window.
        end_ns: u64,
        /// The steps of a schedule.
        steps: Vec<UnixSpan>,
        imports: Vec<UnixSpan>,
        other_imports: Vec<UnixSpan>,
        worker_starts: Vec<(UnixSpan, usize)>,
        worker_ends: Vec<UnixSpan>,
        loop_thread: u64,
        /// The modules whose imports have ranges.
        modules: Vec<String>,
        /// The keys of the launcher's ranges around and beside steps.
        step_keys: Vec<String>,
    }
}

impl Marks {
    /// Returns the marks with times since the profile's reference time.
    fn into_engine(self, reference_unix_ns: u64, process: u64) -> RunMarks {
        let time = |unix_ns: u64| Nanos(unix_ns.saturating_sub(reference_unix_ns));
        let span = |(begin, end): UnixSpan| Span {
            begin: time(begin),
            end: time(end),
        };
        RunMarks {
            end: Some(time(self.end_ns)),
            steps: self.steps.into_iter().map(span).collect(),
            imports: self.imports.into_iter().map(span).collect(),
            other_imports: self.other_imports.into_iter().map(span).collect(),
            worker_starts: self
                .worker_starts
                .into_iter()
                .map(|(started, workers)| WorkersStart {
                    span: span(started),
                    workers,
                })
                .collect(),
            worker_ends: self.worker_ends.into_iter().map(span).collect(),
            process,
            loop_thread: self.loop_thread,
        }
    }
}

/// The conclusions from one window of a run, which the launcher prints.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct RunReport {
    report: Report,
    side: SideRanges,
    analyzed: Arc<Analyzed>,
    group_by: mindprof_analyze::GroupBy,
}

/// Analyzes the recording of one window of a run.
#[pyfunction]
pub(crate) fn run_report(
    py: Python<'_>,
    profile: PyRef<'_, Profile>,
    marks: Marks,
) -> PyResult<RunReport> {
    let process = profile.own_process(py)?;
    let profile = &*profile;
    py.enter(move || {
        let recorded = profile.analyzed();
        let analysis = &recorded.analysis;
        let step_keys: Vec<&str> = marks.step_keys.iter().map(String::as_str).collect();
        let side = SideRanges {
            step_times: marks.steps.clone(),
            ..SideRanges::find(analysis.profile(), &marks.modules, &step_keys)
        };
        let work = Work::without(side.clone());
        let group_by = work.grouping(analysis.profile());
        let analyzed = Analyzed::with_work(Arc::clone(analysis), work);
        let view = analyzed.view(group_by);
        let rows = view.rows(group_by);
        let marks = marks.into_engine(analysis.profile().reference_unix_ns(), process);
        let report = Report::build(analysis, &view.analysis, &rows, &marks);
        Ok::<_, Error>(RunReport {
            report,
            side,
            analyzed,
            group_by,
        })
    })
}

#[pymethods]
impl RunReport {
    /// Returns the rows of the program's work, without imports and the launcher's own ranges.
    fn rows(&self, py: Python<'_>) -> PyResult<Averages> {
        let (analyzed, group_by) = (Arc::clone(&self.analyzed), self.group_by);
        py.enter(move || Ok::<_, Error>(Averages::new(analyzed, group_by)))
    }

    /// Returns the metadata that tells readers of the trace which ranges its rows leave out: its key
    /// and its JSON.
    fn metadata(&self) -> (&'static str, String) {
        (RUN_KEY, self.side.json())
    }

    /// Returns facts about the window, one per line.
    fn facts(&self) -> Vec<String> {
        run_facts(&self.report)
    }

    /// Returns hints about possible improvements, one per line.
    fn hints(&self, has_schedule: bool, has_stacks: bool) -> Vec<String> {
        let options = RunOptions {
            has_schedule,
            has_stacks,
        };
        run_hints(&self.report, options)
    }
}
