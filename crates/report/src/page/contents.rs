//! Everything that a report concludes from a profile, concluded once.

use mindprof_analyze::Analysis;
use mindprof_answers::{
    CriticalPath, Device, Explanation, MemoryGrowth, ModuleRows, Modules, OwnCode, PathOptions,
    Step, Summary, Work,
};

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
}

impl<'a> Contents<'a> {
    /// Draws all conclusions. `mine` are parts of paths that make a file the user's own.
    pub(super) fn build(analysis: &'a Analysis, mine: &[String]) -> Self {
        let profile = analysis.profile();
        let work = Work::of(analysis);
        let own = OwnCode::of(profile.metadata(), mine);
        let explanation = Explanation::build(analysis, &work, &own);
        let steps: Vec<Step> = explanation.steps.steps.iter().map(|time| time.step).collect();
        let options = PathOptions {
            rows: PATH_ROWS,
            ..PathOptions::default()
        };
        Self {
            modules: Modules::build(analysis, &work, ModuleRows::Classes),
            device: Device::build(analysis),
            path: CriticalPath::build(analysis, &own, options),
            summary: Summary::build(profile),
            growth: MemoryGrowth::find(analysis, &own, &steps, None),
            analysis,
            work,
            own,
            explanation,
        }
    }

    /// Returns the steps whose beginning is known.
    pub(super) fn steps(&self) -> &[mindprof_answers::StepTime] {
        &self.explanation.steps.steps
    }
}
