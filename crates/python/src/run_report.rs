//! The report of `mindprof run` about one window.
//!
//! The launcher, written in Python, passes the times that it noted; the engine draws the
//! conclusions.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use mindprof_analyze::{Cut, Folded, PATH_LEVELS, SLIM_KEY, StackMetric, slim};
use mindprof_answers::{
    Compiled, FUNCTIONS_KEY, OwnCode, Pictures, RUN_FACTS_KEY, RUN_KEY, RunMarks,
    RunReport as Report, Screen as Contents, ScreenFacts, SideRanges, SourceFile, SourceFiles,
    SourceFunction, Span, Work, WorkersStart, last_window,
};
use mindprof_formats::write_folded_paths;
use mindprof_model::{Nanos, Place};
use mindprof_report::{
    FlameGraph, RunOptions, ScreenEnd, draw_flamegraph, run_facts, run_hints, screen_text,
};
use mindprof_trace::{slim_metadata, write_file};
use pyo3::prelude::*;

use crate::analyzed::Analyzed;
use crate::averages::Averages;
use crate::enter::Enter;
use crate::error::Error;
use crate::from_dict::from_dict;
use crate::profile::Profile;

/// Paths with less than this fraction of the time are not written.
const PATH_PARTS: u64 = 10_000;

/// Paths with less than this fraction of the time are not drawn: they are narrower than a pixel.
const DRAWN_PARTS: u64 = 2_000;

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

/// A source file: the name in frames, functions as first line, last line and name, and lines.
type Source = (String, Vec<(u32, u32, String)>, Vec<String>);

from_dict! {
    /// Facts that the launcher collects when a window ends, as a dict.
    pub(crate) struct Facts {
        /// The user's source files.
        sources: Vec<Source>,
        /// Compiled functions: name, file, line, number of compilations, nanoseconds and reason.
        compiled: Vec<(String, String, u32, u64, u64, Option<String>)>,
        /// The number of garbage collections, and their nanoseconds.
        collections: (u64, u64),
        /// Processes that were not recorded.
        children: Vec<String>,
    }
}

fn source_files(sources: Vec<Source>) -> SourceFiles {
    let function = |(first, last, name)| SourceFunction { first, last, name };
    let sources = sources
        .into_iter()
        .map(|(file, functions, lines)| SourceFile {
            file,
            functions: functions.into_iter().map(function).collect(),
            lines,
        });
    SourceFiles::new(sources.collect())
}

impl Facts {
    fn into_engine(self) -> ScreenFacts {
        let compiled = self.compiled.into_iter();
        let compiled =
            compiled.map(
                |(function, file, line, times, nanoseconds, reason)| Compiled {
                    function,
                    file,
                    line,
                    times,
                    time: Nanos(nanoseconds),
                    reason,
                },
            );
        ScreenFacts {
            sources: source_files(self.sources),
            compiled: compiled.collect(),
            collections: (self.collections.0, Nanos(self.collections.1)),
            children: self.children,
            mine: Vec::new(),
        }
    }
}

from_dict! {
    /// The last lines of the first screen, which the launcher knows, as a dict.
    pub(crate) struct End {
        /// The written files, a line each.
        wrote: Vec<String>,
        /// The program and its arguments, quoted for a shell.
        program: String,
        /// The trace, quoted for a shell.
        trace: Option<String>,
        has_schedule: bool,
        has_stacks: bool,
    }
}

/// The first screen of a run.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct RunScreen {
    contents: Contents,
}

#[pymethods]
impl RunScreen {
    /// Returns the screen as text.
    fn text(&self, end: End) -> String {
        let end = ScreenEnd {
            wrote: end.wrote,
            program: end.program,
            trace: end.trace,
            has_schedule: end.has_schedule,
            has_stacks: end.has_stacks,
        };
        screen_text(&self.contents, &end)
    }

    /// Returns the screen as JSON.
    fn json(&self) -> String {
        self.contents.json()
    }
}

/// The conclusions from one window of a run, which the launcher prints.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct RunReport {
    report: Report,
    side: SideRanges,
    analyzed: Arc<Analyzed>,
    group_by: mindprof_analyze::GroupBy,
    /// The paths of the program's work, and the time that other threads waited.
    paths: OnceLock<(Folded<'static>, Nanos)>,
}

impl RunReport {
    fn paths(&self) -> &(Folded<'static>, Nanos) {
        self.paths.get_or_init(|| {
            let folded = Folded::build(&self.analyzed.analysis, StackMetric::SelfCpuTime);
            let pictures = Pictures::new(&folded, &Work::without(self.side.clone()));
            (pictures.work.into_owned(), pictures.waited)
        })
    }
}

/// Returns the last part of a recording that has at most `most` events and memory records, and the
/// metadata that reports the cut; `None` if all of it fits.
#[pyfunction]
pub(crate) fn last_part(
    py: Python<'_>,
    profile: PyRef<'_, Profile>,
    most: usize,
) -> PyResult<Option<(Profile, &'static str, String)>> {
    let profile = &*profile;
    py.enter(move || {
        let whole = profile.analyzed().analysis.profile();
        let part = last_window(whole, most).map(|window| {
            let cut = Cut {
                window: Some(window),
                ..Cut::default()
            };
            let slimmed = slim(whole, &cut);
            let json = slim_metadata(&slimmed.report);
            (
                Profile::from_analyzed(Analyzed::new(slimmed.profile)),
                SLIM_KEY,
                json,
            )
        });
        Ok::<_, Error>(part)
    })
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
            paths: OnceLock::new(),
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

    /// Returns the metadata that tells readers of the trace the functions of the user's files: its
    /// key and its JSON.
    #[staticmethod]
    fn functions(sources: Vec<Source>) -> (&'static str, String) {
        (FUNCTIONS_KEY, source_files(sources).functions_json())
    }

    /// Returns the metadata that tells readers of the trace the facts that the first sentence rests
    /// on: its key and its JSON.
    fn run_facts(&self, facts: Facts) -> (&'static str, String) {
        (RUN_FACTS_KEY, facts.into_engine().run(&self.report).json())
    }

    /// Returns the files that the frames of the recording refer to and that are the user's own.
    fn own_files(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.enter(|| {
            let profile = self.analyzed.analysis.profile();
            let own = OwnCode::of(profile.metadata(), &[]);
            let frames = profile.strings().iter().filter_map(Place::parse);
            let files = frames
                .map(|place| place.file)
                .filter(|file| own.contains(file));
            let files: std::collections::BTreeSet<&str> = files.collect();
            Ok::<_, Error>(files.into_iter().map(str::to_owned).collect())
        })
    }

    /// Writes the call paths of the program's work to a file, one line each.
    fn write_stacks(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.enter(|| {
            let (work, _) = self.paths();
            // As in the flame graph, paths that are too short to be seen count at their callers.
            let work = work.cut(PATH_LEVELS, Nanos(work.total().0 / PATH_PARTS));
            write_file(&path, |out| write_folded_paths(&work, out).map(drop))
        })
    }

    /// Returns whether the program's work has paths to draw.
    fn has_paths(&self, py: Python<'_>) -> PyResult<bool> {
        py.enter(|| Ok::<_, Error>(self.paths().0.total() > Nanos::ZERO))
    }

    /// Draws the program's work as a flame graph into a file.
    fn write_flamegraph(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.enter(|| {
            let (drawn, waited) = self.paths();
            let drawn = drawn.cut(PATH_LEVELS, Nanos(drawn.total().0 / DRAWN_PARTS));
            let profile = self.analyzed.analysis.profile();
            let picture = FlameGraph {
                metric: StackMetric::SelfCpuTime,
                waited: *waited,
            };
            write_file(&path, |out| draw_flamegraph(&drawn, profile, picture, out))
        })
    }

    /// Draws the conclusions of the first screen.
    fn screen(&self, py: Python<'_>, facts: Facts) -> PyResult<RunScreen> {
        py.enter(|| {
            let work = Work::without(self.side.clone());
            let analysis = &self.analyzed.analysis;
            let contents = Contents::build(analysis, &work, &self.report, facts.into_engine());
            Ok::<_, Error>(RunScreen { contents })
        })
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
