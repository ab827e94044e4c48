//! Everything that a report concludes from a profile, concluded once.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use mindprof_analyze::Analysis;
use mindprof_answers::{
    CriticalPath, Device, Explanation, MemoryGrowth, ModuleRows, Modules, OwnCode, PathOptions,
    Step, Steps, Summary, Work,
};
use mindprof_model::Nanos;
use rustc_hash::FxHashMap;

/// The number of rows of each list of the critical path.
const PATH_ROWS: usize = 30;

/// The conclusions that the panes of a report show.
#[derive(Debug)]
pub(super) struct Contents<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) work: Work,
    pub(super) own: OwnCode,
    pub(super) explanation: Explanation,
    pub(super) modules: Modules,
    pub(super) device: Device,
    pub(super) path: CriticalPath,
    pub(super) summary: Summary,
    pub(super) growth: Option<MemoryGrowth>,
    /// The number of ranges that are no steps because an earlier one has their number.
    pub(super) repeated_steps: usize,
}

impl<'a> Contents<'a> {
    /// Draws all conclusions. `mine` are parts of paths that make a file the user's own.
    pub(super) fn build(analysis: &'a Analysis, mine: &[String]) -> Self {
        let profile = analysis.profile();
        let work = Work::of(analysis);
        let own = OwnCode::of(profile.metadata(), mine);
        let options = PathOptions {
            rows: PATH_ROWS,
            ..PathOptions::default()
        };
        let (explanation, path, device, modules) = std::thread::scope(|scope| {
            // The replays of advice and path take longest, and are independent of each other.
            let path = named("critical path", scope, || {
                CriticalPath::build(analysis, &own, options)
            });
            let device = named("device", scope, || Device::build(analysis));
            let explanation = Explanation::build(analysis, &work, &own);
            let modules = Modules::build(analysis, &work, ModuleRows::Classes);
            (explanation, joined(path), joined(device), modules)
        });
        let steps: Vec<Step> = explanation
            .steps
            .steps
            .iter()
            .map(|time| time.step)
            .collect();
        Self {
            growth: MemoryGrowth::find(analysis, &own, &steps, None),
            summary: Summary::build(profile),
            repeated_steps: Steps::build(profile).repeated(),
            modules,
            device,
            path,
            analysis,
            work,
            own,
            explanation,
        }
    }

    /// Returns the steps as the devices see them, by number.
    pub(super) fn device_steps(&self) -> FxHashMap<u64, Step> {
        let steps = self.device.steps.iter().map(|device| device.step);
        steps.map(|step| (step.number, step)).collect()
    }

    /// Returns the median duration of a step on the devices, if they are behind the CPU.
    pub(super) fn device_median(&self) -> Option<Nanos> {
        self.explanation.steps.device_p50
    }

    /// Returns the steps whose beginning is known.
    pub(super) fn steps(&self) -> &[mindprof_answers::StepTime] {
        &self.explanation.steps.steps
    }
}

/// Runs a part of the work on a thread with a name.
fn named<'scope, T: Send + 'scope>(
    name: &str,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let builder = Builder::new().name(format!("mindprof {name}"));
    builder
        .spawn_scoped(scope, work)
        .expect("a thread can be started")
}

/// Waits for a part of the work. A panic of it goes on here.
fn joined<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
