//! The conclusions about one window of `mindprof run`: its imports, its steps, the waits of its
//! loop, and how much of its time no row explains.
//!
//! The input is the recording and the marks of the launcher; `mindprof_report` puts the result into
//! words.

use mindprof_analyze::{Analysis, process_time, spans};
use mindprof_model::{DeviceKind, LossCause, Nanos, Profile};

use crate::steps::Steps;
use crate::waits::{DataWaits, LoopTimes, Span, WaitFinding, WorkersStart};
use crate::work::{ImportTime, WorkRows};

/// The prefix of the ranges in which a loop gets its next batch from one of torch's data loaders,
/// and the prefix if the loader has workers.
const NEXT_BATCH: &str = "enumerate(DataLoader)#";
const FROM_WORKERS: &str = "enumerate(DataLoader)#_MultiProcessing";

/// Facts about a window that the launcher of a run knows and that its recording does not contain.
#[derive(Clone, Debug, Default)]
pub struct RunMarks {
    /// The end of the window, if it is known. Workers may be recorded for longer.
    pub end: Option<Nanos>,
    /// The times of the optimizer steps that the launcher recorded as ranges. The program's own
    /// profilers may record ranges of the same names.
    pub steps: Vec<Span>,
    /// The times of imports on the program's main thread.
    pub imports: Vec<Span>,
    /// The times of imports on other threads.
    pub other_imports: Vec<Span>,
    /// The times at which data loaders started their workers.
    pub worker_starts: Vec<WorkersStart>,
    /// The times at which the loop found no further batch and ended its workers.
    pub worker_ends: Vec<Span>,
    /// The id of the program's process. Other processes are its workers.
    pub process: u64,
    /// The native id of the thread that runs the training loop.
    pub loop_thread: u64,
}

/// The optimizer steps of a window.
///
/// Steps come either from marks or from ranges ([`Steps`]), and each source leaves other times
/// beside the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSteps {
    /// The time until the first step ended, if that step began with the window.
    pub until_first: Option<Nanos>,
    /// The duration of each step whose beginning is known.
    pub times: Vec<Nanos>,
    /// The time after the last step, if steps are marks.
    pub after_last: Option<Nanos>,
    /// The ranges before the first and after the last step with their times, if steps are ranges.
    pub beside: Vec<(String, Nanos)>,
}

impl RunSteps {
    /// Returns the number of steps that ended in the window.
    pub fn count(&self) -> usize {
        self.times.len() + usize::from(self.until_first.is_some())
    }
}

/// The conclusions from one window of a run.
///
/// The report holds numbers and findings; `mindprof_report` writes the summary from it that a run
/// prints.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The duration of the window.
    pub recorded: Nanos,
    /// The duration of the window without imports on the main thread.
    pub rest: Nanos,
    /// The import time of each module, longest first.
    pub imports: Vec<ImportTime>,
    /// The time of imports on other threads.
    pub other_imports: Nanos,
    /// The optimizer steps.
    pub steps: RunSteps,
    /// Whether the byte budget was full, so that events are missing.
    pub is_over_budget: bool,
    /// The waits of the loop.
    pub waits: DataWaits,
    /// The findings about the waits. Empty if events are missing.
    pub wait_findings: Vec<WaitFinding>,
    /// The time that no row explains, if it is most of the time.
    pub outside: Option<Nanos>,
    /// The number of recorded worker processes.
    pub workers: usize,
}

impl RunReport {
    /// Draws the conclusions from the recording of one window.
    ///
    /// `rows` are the rows of the window's work, and `view` is the analysis that they were made
    /// from.
    pub fn build(analysis: &Analysis, view: &Analysis, rows: &WorkRows, marks: &RunMarks) -> Self {
        let profile = analysis.profile();
        let recorded = marks.end.unwrap_or(Nanos(u64::MAX)).min(profile.span());
        let steps = Steps::build(profile);
        let known = known_steps(&steps, marks);
        let is_over_budget = profile.loss().count(LossCause::Budget) > 0;
        // Imports on other threads and processes run beside the main thread.
        let rest = recorded.saturating_sub(inside(&marks.imports, recorded));
        let waits = data_waits(profile, marks, recorded);
        let around = LoopTimes {
            rest,
            steps: whole_of(&known),
            step_times: known.iter().map(|step| step.duration()).collect(),
        };
        let wait_findings = if is_over_budget {
            Vec::new()
        } else {
            waits.findings(&around)
        };
        Self {
            recorded,
            rest,
            imports: rows.left_out.import_times(),
            other_imports: inside(&marks.other_imports, recorded),
            steps: run_steps(&steps, rows, around.step_times, recorded),
            is_over_budget,
            waits,
            wait_findings,
            outside: outside(view, rows, marks, rest).filter(|_| !is_over_budget),
            workers: processes(profile).saturating_sub(1),
        }
    }

    /// Returns the total time of imports.
    pub fn import_time(&self) -> Nanos {
        Nanos(self.imports.iter().map(|import| import.time.0).sum())
    }
}

/// Returns how much time of some spans is inside the window.
fn inside(spans: &[Span], window: Nanos) -> Nanos {
    let inside = spans.iter().map(|span| {
        let end = span.end.min(window);
        end.saturating_sub(span.begin).0
    });
    Nanos(inside.sum())
}

/// Returns the steps whose beginning is known: those of the launcher's schedule, or those between two
/// marks. Other ranges of steps belong to profilers of the program.
fn known_steps(steps: &Steps, marks: &RunMarks) -> Vec<Span> {
    if steps.first_of_marks().is_none() {
        return marks.steps.clone();
    }
    let marked = steps.complete().iter().skip(1);
    marked
        .map(|step| Span {
            begin: step.start,
            end: step.end(),
        })
        .collect()
}

/// Returns the time from the beginning of the first span to the end of the last.
fn whole_of(spans: &[Span]) -> Option<Span> {
    let begin = spans.iter().map(|span| span.begin).min()?;
    let end = spans.iter().map(|span| span.end).max()?;
    Some(Span { begin, end })
}

fn run_steps(steps: &Steps, rows: &WorkRows, times: Vec<Nanos>, recorded: Nanos) -> RunSteps {
    let first = steps.first_of_marks();
    // All step ranges share one key with a `*`; the other keys are ranges beside the steps.
    let beside = rows.left_out.steps.iter();
    let beside = beside.filter(|row| !row.key.ends_with('*'));
    RunSteps {
        until_first: first.map(|step| step.duration),
        times,
        after_last: first
            .and(steps.open())
            .map(|step| recorded.saturating_sub(step.start)),
        beside: beside
            .map(|row| (row.key.clone(), row.sums.cpu_total))
            .collect(),
    }
}

fn data_waits(profile: &Profile, marks: &RunMarks, recorded: Nanos) -> DataWaits {
    let of_loop = |prefix: &str| -> Vec<Span> {
        spans(profile, prefix)
            .into_iter()
            .filter(|span| span.thread.native == marks.loop_thread)
            .map(|span| Span {
                begin: span.begin,
                end: span.end,
            })
            .collect()
    };
    let in_window = |span: &Span| inside(&[*span], recorded) > Nanos::ZERO;
    let starts: Vec<WorkersStart> = marks
        .worker_starts
        .iter()
        .filter(|start| in_window(&start.span))
        .copied()
        .collect();
    let ends: Vec<Span> = marks
        .worker_ends
        .iter()
        .filter(|end| in_window(end))
        .copied()
        .collect();
    let has_workers = !of_loop(FROM_WORKERS).is_empty();
    DataWaits::new(&of_loop(NEXT_BATCH), &starts, &ends, has_workers)
}

/// Returns the time of the program that no row explains, if the rows show operators and it is most
/// of the time. The times of threads add up, so the true value may be larger.
fn outside(view: &Analysis, rows: &WorkRows, marks: &RunMarks, rest: Nanos) -> Option<Nanos> {
    let has_operators = !rows.averages.rows.is_empty() && !has_python_rows(rows);
    let side: Vec<&str> = rows.left_out.rows().map(|row| row.key.as_str()).collect();
    let covered = process_time(view, marks.process, &side);
    let outside = rest.saturating_sub(covered);
    (has_operators && outside.0 > rest.0 / 2).then_some(outside)
}

fn has_python_rows(rows: &WorkRows) -> bool {
    let mut rows = rows.averages.rows.iter();
    rows.any(|row| row.category == mindprof_model::Category::PythonFunction)
}

fn processes(profile: &Profile) -> usize {
    let threads = profile.threads().iter();
    let cpu = threads.filter(|thread| thread.device == DeviceKind::Cpu);
    let mut processes: Vec<u64> = cpu.map(|thread| thread.process).collect();
    processes.sort_unstable();
    processes.dedup();
    processes.len()
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Part, StepMark, Timeline};

    use super::*;
    use crate::side_ranges::SideRanges;
    use crate::work::Work;

    fn report(profile: Profile, side: SideRanges, marks: &RunMarks) -> RunReport {
        let work = Work::without(side);
        let group_by = work.grouping(&profile);
        let analysis = Analysis::build(profile);
        let view = work.view(&analysis, group_by);
        let view = view.as_ref().unwrap_or(&analysis);
        let rows = work.averages(view, group_by);
        RunReport::build(&analysis, view, &rows, marks)
    }

    // import torch |----|                  0..40
    // mm                  |--|   |--|      50..60, 70..80
    #[test]
    fn imports_are_no_part_of_the_rest() {
        let profile = Timeline::draw(|time| {
            time.annotation("import torch", |time| time.idle(40));
            time.idle(10);
            time.op("mm", 10);
            time.idle(10);
            time.op("mm", 10);
        });
        assert_eq!(profile.span(), Nanos(80));
        let side = SideRanges::find(&profile, &["torch".into()], &[]);
        let marks = RunMarks {
            imports: vec![Span {
                begin: Nanos(0),
                end: Nanos(40),
            }],
            process: profile.threads()[0].process,
            ..RunMarks::default()
        };
        let report = report(profile, side, &marks);
        assert_eq!(report.rest, Nanos(40));
        assert_eq!(report.import_time(), Nanos(40));
        assert_eq!(report.imports[0].module, "torch");
        assert_eq!(report.outside, None);
        assert_eq!((report.steps.count(), report.workers), (0, 0));
    }

    // recording |-------|-----|-----|--|   0..100
    // marks             40    60    80
    #[test]
    fn the_first_step_of_marks_is_apart_from_the_others() {
        let mut part = Part::new();
        part.span = Nanos(100);
        part.reference_unix_ns = 7;
        let marks = [(1, 47), (2, 67), (3, 87)];
        let marks = marks.map(|(number, unix_ns)| StepMark { number, unix_ns });
        StepMark::write(&marks, &mut part.metadata);
        let profile = part.into_profile().expect("nothing was added");
        let steps = report(profile, SideRanges::default(), &RunMarks::default()).steps;
        assert_eq!(steps.count(), 3);
        assert_eq!(steps.until_first, Some(Nanos(40)));
        assert_eq!(steps.times, [Nanos(20), Nanos(20)]);
        assert_eq!(steps.after_last, Some(Nanos(20)));
    }

    // ProfilerStep#7 |------|            0..10, of a profiler of the program
    // window         |------------|      0..20; workers go on until 30
    #[test]
    fn ranges_of_other_profilers_are_not_optimizer_steps() {
        let draw = || {
            Timeline::draw(|time| {
                time.annotation("ProfilerStep#7", |time| time.op("mm", 10));
                time.idle(10);
                time.op("mm", 10);
            })
        };
        let without = report(draw(), SideRanges::default(), &RunMarks::default());
        assert_eq!(without.steps.count(), 0);
        assert_eq!(without.recorded, Nanos(30));
        let marks = RunMarks {
            end: Some(Nanos(20)),
            steps: vec![Span {
                begin: Nanos(5),
                end: Nanos(18),
            }],
            ..RunMarks::default()
        };
        let with = report(draw(), SideRanges::default(), &marks);
        assert_eq!(with.steps.times, [Nanos(13)]);
        assert_eq!(with.recorded, Nanos(20));
    }
}
