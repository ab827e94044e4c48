//! The options that select a part of a trace by time, and the reading of that part.

use std::path::Path;

use mindprof_analyze::{Analysis, slim};
use mindprof_answers::{NotSelected, TimeSelection};
use mindprof_trace::Reading;

use crate::failure::advised;
use crate::input::{ReadLimits, analyzed, read_analysis, tell_part};
use crate::units;

/// The part of a trace that a command looks at. All commands with these options share them.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Selected {
    /// Look only at step N, or at steps N to M, inclusive.
    #[arg(long, value_name = "N..M", value_parser = units::range)]
    steps: Option<(u64, u64)>,

    /// Look only at what runs within ranges, operators, modules or Python functions called NAME;
    /// NAME#N means its Nth run.
    #[arg(long, value_name = "NAME[#N]")]
    within: Option<String>,
}

impl Selected {
    /// Returns whether a part is selected.
    pub(crate) const fn is_part(&self) -> bool {
        self.steps.is_some() || self.within.is_some()
    }
}

/// Reads and analyzes the selected part of a trace. Prints warnings, and whether the trace itself is
/// only a part of its recording.
pub(crate) fn read_selected(
    path: &Path,
    limits: ReadLimits,
    selected: &Selected,
) -> anyhow::Result<Analysis> {
    let analysis = read_analysis(path, limits)?;
    tell_part(path, &analysis);
    select(analysis, selected)
}

/// Analyzes the selected part of a trace that was read. Prints whether the trace itself is only a
/// part of its recording.
pub(crate) fn selected_of(
    path: &Path,
    reading: Reading,
    selected: &Selected,
) -> anyhow::Result<Analysis> {
    let analysis = analyzed(reading);
    tell_part(path, &analysis);
    select(analysis, selected)
}

/// Reads and analyzes the selected part of a trace for a comparison, which tells by itself whether
/// its sides are complete.
pub(crate) fn read_compared(
    path: &Path,
    limits: ReadLimits,
    selected: &Selected,
) -> anyhow::Result<Analysis> {
    select(read_analysis(path, limits)?, selected)
}

fn select(analysis: Analysis, selected: &Selected) -> anyhow::Result<Analysis> {
    let selection = TimeSelection {
        steps: selected.steps,
        within: selected.within.clone(),
    };
    if selection.is_all() {
        return Ok(analysis);
    }
    let cut = selection.cut(analysis.profile());
    let cut = cut.map_err(|reason| refusal(&reason))?;
    Ok(Analysis::build(slim(analysis.profile(), &cut).profile))
}

/// Returns the error for a part that a trace does not have.
pub(crate) fn refusal(reason: &NotSelected) -> anyhow::Error {
    match reason {
        NotSelected::NoSteps => advised(
            "the trace has no steps",
            "record with `prof.step()`, or select a time or a range by other options",
        ),
        NotSelected::OtherSteps { first, last } => advised(
            "the trace has none of these steps",
            format!("choose from steps {first} to {last}"),
        ),
        NotSelected::NoName { name, similar } => {
            let hint = match similar {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => "list names with `mindprof table --include-python-functions`".into(),
            };
            advised(format!("nothing called `{name}` in the trace"), hint)
        }
        NotSelected::FewerTimes { name, times } => advised(
            format!("`{name}` has no run of that number"),
            format!("choose from 1 to {times}"),
        ),
    }
}
