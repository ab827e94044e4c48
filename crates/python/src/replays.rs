//! Advice, the critical path and what-if for Python, as JSON and as text.

use std::path::Path;

use mindprof_answers::{Advice, Changes, CriticalPath, OwnCode, PathOptions, Prediction, Timing};
use mindprof_formats::write_critical_path;
use mindprof_report::{
    AdviceLayout, CodeLayout, advice_text, critical_path_text, not_changed_text, what_if_text,
};
use mindprof_trace::{Effort, write_file_with};

use crate::analyzed::Analyzed;
use crate::error::Error;

/// The arguments of a question about the critical path.
pub(crate) struct PathQuestion {
    /// Parts of the paths of the user's files; empty to decide by library.
    pub(crate) mine: Vec<String>,
    /// The largest number of rows in each list.
    pub(crate) limit: usize,
    /// Whether the profiler's own cost counts.
    pub(crate) recorded: bool,
    /// The width of the text.
    pub(crate) width: Option<usize>,
}

impl PathQuestion {
    /// Returns the critical path as JSON and as text, and writes a trace with it to `out`.
    pub(crate) fn answer(
        &self,
        analyzed: &Analyzed,
        out: Option<&Path>,
    ) -> Result<(String, String), Error> {
        let profile = analyzed.analysis.profile();
        let own = OwnCode::of(profile.metadata(), &self.mine);
        let options = PathOptions {
            rows: self.limit,
            timing: if self.recorded {
                Timing::Recorded
            } else {
                Timing::Unrecorded
            },
        };
        let path = CriticalPath::build(&analyzed.analysis, &own, options);
        if let Some(out) = out {
            let name = out.display().to_string();
            write_file_with(out, Effort::Small, |file| {
                write_critical_path(profile.clone(), &path, &name, file)
            })?;
        }
        let layout = CodeLayout {
            rows: self.limit,
            width: self.width,
        };
        Ok((path.json(), critical_path_text(&path, layout)))
    }
}

/// Returns advice as JSON and as text. `mine` are parts of the paths of the user's files.
pub(crate) fn advice(
    analyzed: &Analyzed,
    mine: &[String],
    width: Option<usize>,
) -> (String, String) {
    let analysis = &analyzed.analysis;
    let own = OwnCode::of(analysis.profile().metadata(), mine);
    let advice = Advice::build(analysis, &own);
    let layout = AdviceLayout {
        findings: usize::MAX,
        all_rules: true,
        width,
    };
    (advice.json(), advice_text(&advice, layout))
}

/// Returns a prediction as JSON and as text, or the reason why there is none.
pub(crate) fn what_if(
    analyzed: &Analyzed,
    changes: &Changes,
    width: Option<usize>,
) -> Result<(String, String), String> {
    match Prediction::build(&analyzed.analysis, changes) {
        Ok(prediction) => Ok((prediction.json(), what_if_text(&prediction, width))),
        Err(reason) => {
            let (message, hint) = not_changed_text(&reason);
            Err(format!("{message}: {hint}"))
        }
    }
}
