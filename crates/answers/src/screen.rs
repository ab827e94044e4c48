//! The first screen of `mindprof run`: what takes the time of a run and where, as data.
//!
//! It brings the conclusions about one window together with the facts that only the launcher knows:
//! compilations, garbage collections, children and source files.

use mindprof_analyze::{Analysis, microseconds};
use mindprof_model::{Category, LossCause, Nanos};
use serde::Serialize;
use serde_json::json;

use crate::advice::Advice;
use crate::charges::AllCharges;
use crate::code_paths::CodePaths;
use crate::memory_growth::MemoryGrowth;
use crate::own_code::OwnCode;
use crate::questions::micros;
use crate::recorder_cost::{CostName, RecorderCost};
use crate::run::RunReport;
use crate::sampling::Sampling;
use crate::source_files::SourceFiles;
use crate::step_times::StepTimes;
use crate::steps::Step;
use crate::top_operators::{TopOperator, TopOperators, WideFloats};
use crate::work::Work;

/// The share of a run that waiting for data takes, from which on it comes first.
const WAITING: f64 = 0.3;

/// The compilations of one function by a compiler such as `torch.compile`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compiled {
    /// The name of the function.
    pub function: String,
    /// Its file, as the compiler names it.
    pub file: String,
    /// The line of its definition.
    pub line: u32,
    /// The number of compilations.
    pub times: u64,
    /// The time of all compilations.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
    /// Why it was compiled again, if the compiler tells.
    pub reason: Option<String>,
}

/// Facts about a run that neither its recording nor its marks contain.
#[derive(Clone, Debug, Default)]
pub struct ScreenFacts {
    /// The user's own source files.
    pub sources: SourceFiles,
    /// The compilations, those that took longest first.
    pub compiled: Vec<Compiled>,
    /// The number of garbage collections and their time.
    pub collections: (u64, Nanos),
    /// The processes that the program started and that were not recorded.
    pub children: Vec<String>,
    /// Parts of paths that make a file the user's own.
    pub mine: Vec<String>,
}

/// A function of other threads or processes that makes the loop wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Elsewhere {
    /// The file that defines it.
    pub file: String,
    /// Its name.
    pub function: String,
    /// The line in it that takes most of the time.
    pub line: u32,
    /// The time of its code and of the operators and libraries that it calls.
    #[serde(rename = "own_us", serialize_with = "micros")]
    pub own: Nanos,
    /// The time of all threads and processes besides the main thread.
    #[serde(rename = "of_us", serialize_with = "micros")]
    pub of: Nanos,
}

/// The operators that the culprit calls in one step, without backward work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepOperators {
    /// The least number in a step.
    pub least: u64,
    /// The number that half of the steps do not exceed.
    pub median: u64,
    /// The largest number in a step.
    pub most: u64,
}

/// The contents of the first screen.
#[derive(Clone, Debug)]
pub struct Screen {
    /// The report about the window.
    pub report: RunReport,
    /// The facts of the launcher.
    pub facts: ScreenFacts,
    /// The times of the steps.
    pub steps: StepTimes,
    /// The paths of the user's functions on the main thread.
    pub paths: CodePaths,
    /// How many operators the culprit calls in a step, if there are steps.
    pub step_operators: Option<StepOperators>,
    /// The function of workers that takes most of their time, if the loop waits for workers.
    pub elsewhere: Option<Elsewhere>,
    /// The operators by decreasing time.
    pub operators: Vec<TopOperator>,
    /// Double precision that surprises.
    pub wide: Option<WideFloats>,
    /// Memory that grows with every step.
    pub growth: Option<MemoryGrowth>,
    /// The number of events that were lost because the budget was full.
    pub lost: u64,
    /// Whether a device did work.
    pub has_device: bool,
    /// How stacks were sampled, or `None` if every call was recorded.
    pub sampling: Option<Sampling>,
    /// Why the steps are slow, and what mending that would save.
    pub advice: Advice,
}

impl Screen {
    /// Draws the conclusions of the first screen.
    pub fn build(analysis: &Analysis, work: &Work, report: &RunReport, facts: ScreenFacts) -> Self {
        let profile = analysis.profile();
        let own = OwnCode::of(profile.metadata(), &facts.mine);
        let steps = StepTimes::build(analysis, &own);
        let known: Vec<Step> = steps.steps.iter().map(|time| time.step).collect();
        let charges = AllCharges::build(analysis, work);
        let top = TopOperators::build(analysis, &own, &charges.is_main);
        let waits: u64 = report.waits.times().iter().map(|time| time.0).sum();
        let paths = CodePaths::build(analysis, &charges.main, &own, &facts.sources);
        let is_waiting = report.waits.has_workers && waits as f64 > WAITING * paths.total.0 as f64;
        let operators = unrecorded(analysis, top.operators, paths.total);
        Self {
            step_operators: step_operators(analysis, &charges, &paths, &known),
            paths,
            elsewhere: is_waiting
                .then(|| CodePaths::build(analysis, &charges.others, &own, &facts.sources))
                .and_then(|paths| elsewhere(&paths)),
            operators,
            wide: top.wide,
            growth: MemoryGrowth::find(analysis, &own, &known, None),
            lost: profile.loss().count(LossCause::Budget),
            has_device: profile
                .events()
                .iter()
                .any(|event| event.category == Category::Kernel),
            sampling: Sampling::read(profile.metadata()),
            advice: Advice::build(analysis, &own),
            report: report.clone(),
            steps,
            facts,
        }
    }

    /// Returns the time that the loop waited for data.
    pub fn data_wait(&self) -> Nanos {
        let waits = self.report.waits.times();
        let total: u64 = waits.iter().map(|time| time.0).sum();
        Nanos(total).min(self.report.rest)
    }

    /// Returns the number of samples that the shares of functions rest on: those of the main thread
    /// in the time that they are shares of. `None` if stacks were not sampled.
    pub fn samples(&self) -> Option<u64> {
        let sampling = self.sampling?;
        Some(sampling.samples_in(self.paths.total))
    }

    /// Returns the time of all compilations.
    pub fn compile_time(&self) -> Nanos {
        let compiled = self.facts.compiled.iter();
        Nanos(compiled.map(|one| one.time.0).sum())
    }

    /// Returns the screen as JSON. Times are microseconds.
    pub fn json(&self) -> String {
        let report = &self.report;
        let imports = report
            .imports
            .iter()
            .map(|import| json!({"module": import.module, "time_us": microseconds(import.time)}));
        let (collections, collecting) = self.facts.collections;
        json!({
            "recorded_us": microseconds(report.recorded),
            "without_imports_us": microseconds(report.rest),
            "imports": imports.collect::<Vec<_>>(),
            "waited_for_data_us": microseconds(self.data_wait()),
            "steps": self.steps,
            "functions": self.paths,
            "culprit": self.paths.culprit(),
            "culprit_operators_per_step": self.step_operators,
            "advice": self.advice,
            "profiler_us": microseconds(self.paths.recording),
            "elsewhere": self.elsewhere,
            "operators": self.operators,
            "float64": self.wide,
            "memory_growth": self.growth,
            "compiled": self.facts.compiled,
            "garbage_collections": collections,
            "garbage_collection_us": microseconds(collecting),
            "children_not_recorded": self.facts.children,
            "workers": report.workers,
            "lost_events": self.lost,
            "sample_interval_us": self.sampling.map(|sampling| sampling.interval_us),
            "samples": self.samples(),
        })
        .to_string()
    }
}

/// Counts the operators that the culprit calls in each step.
fn step_operators(
    analysis: &Analysis,
    charges: &AllCharges,
    paths: &CodePaths,
    steps: &[Step],
) -> Option<StepOperators> {
    let culprit = paths.culprit()?;
    let mut by_start: Vec<(Step, u64)> = steps.iter().map(|&step| (step, 0)).collect();
    by_start.sort_by_key(|(step, _)| step.start);
    for &id in &charges.main_operators {
        let node = analysis.charged_stack(id).index();
        let path = paths.path_of_node.get(node).copied().flatten();
        if !path.is_some_and(|path| culprit.paths.contains(&path)) {
            continue;
        }
        let start = analysis.profile().event(id).start;
        let next = by_start.partition_point(|(step, _)| step.start <= start);
        if let Some((step, count)) = next.checked_sub(1).map(|last| &mut by_start[last])
            && start < step.start + step.duration
        {
            *count += 1;
        }
    }
    let mut counts: Vec<u64> = by_start.into_iter().map(|(_, count)| count).collect();
    counts.sort_unstable();
    Some(StepOperators {
        least: *counts.first()?,
        median: counts[(counts.len() - 1) / 2],
        most: *counts.last()?,
    })
}

/// Takes the time that recording took out of the times of operators, which are parts of `total`. About
/// half of it lies inside of the operators, the rest between them.
fn unrecorded(
    analysis: &Analysis,
    mut operators: Vec<TopOperator>,
    total: Nanos,
) -> Vec<TopOperator> {
    let recorder = RecorderCost::of_own(analysis);
    let each = recorder.per_event(Category::Operator, CostName::Other).0 / 2;
    for operator in &mut operators {
        let time = operator.called.time;
        let most = Nanos((time.0 as f64 * recorder.most()) as u64);
        let recording = Nanos(each * operator.calls).min(most);
        operator.called.time = time.saturating_sub(recording).min(total);
    }
    operators.sort_by_key(|operator| std::cmp::Reverse(operator.called.time));
    operators
}

fn elsewhere(paths: &CodePaths) -> Option<Elsewhere> {
    let culprit = paths.culprit()?;
    let path = &paths.paths[culprit.path];
    Some(Elsewhere {
        file: path.file.clone(),
        function: path.function.clone(),
        line: path.own_line,
        own: culprit.time,
        of: paths.total,
    })
}
