//! The first screen of `mindprof run`: what takes the time of a run and where, as data.
//!
//! It brings the conclusions about one window together with the facts that only the launcher knows:
//! compilations, garbage collections, children and source files.

use mindprof_analyze::{Analysis, microseconds};
use mindprof_model::{Category, LossCause, Nanos};
use serde_json::json;

use crate::advice::Advice;
use crate::charges::AllCharges;
use crate::headline::{Compiled, Headline, Known, RunFacts};
use crate::memory_growth::MemoryGrowth;
use crate::own_code::OwnCode;
use crate::run::RunReport;
use crate::sampling::Sampling;
use crate::source_files::SourceFiles;
use crate::step_times::StepTimes;
use crate::steps::Step;
use crate::top_operators::TopOperators;
use crate::work::Work;

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

impl ScreenFacts {
    /// Returns the facts that the first sentence may rest on.
    pub fn run(&self, report: &RunReport) -> RunFacts {
        let waits = report.waits.times();
        let waited = Nanos(waits.iter().map(|time| time.0).sum());
        RunFacts {
            rest: report.rest,
            data_wait: waited.min(report.rest),
            has_workers: report.waits.has_workers,
            compiled: self.compiled.clone(),
        }
    }
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
    /// The basis of the first sentence, with the functions and operators below it.
    pub headline: Headline,
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
        let own = own.with_functions(facts.sources.clone());
        let steps = StepTimes::build(analysis, &own);
        let known: Vec<Step> = steps.steps.iter().map(|time| time.step).collect();
        let charges = AllCharges::build(analysis, work);
        let top = TopOperators::build(analysis, &own, &charges.is_main);
        let origin = Known {
            own: &own,
            sources: &facts.sources,
            run: facts.run(report),
        };
        Self {
            headline: Headline::build(analysis, &charges, top, &known, origin),
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

    /// Returns the number of samples that the shares of functions rest on: those of the main thread
    /// in the time that they are shares of. `None` if stacks were not sampled.
    pub fn samples(&self) -> Option<u64> {
        let sampling = self.sampling?;
        Some(sampling.samples_in(self.headline.paths.total))
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
            "waited_for_data_us": microseconds(self.headline.run.data_wait),
            "steps": self.steps,
            "device_step_us": self.steps.device_p50.map(microseconds),
            "functions": self.headline.paths,
            "culprit": self.headline.paths.culprit(),
            "culprit_operators_per_step": self.headline.step_operators,
            "advice": self.advice,
            "profiler_us": microseconds(self.headline.paths.recording),
            "elsewhere": self.headline.elsewhere,
            "threads": self.headline.threads.as_ref().map(|(function, _)| function),
            "operators": self.headline.operators,
            "float64": self.headline.wide,
            "memory_growth": self.growth,
            "compiled": self.headline.run.compiled,
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
