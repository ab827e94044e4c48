//! `mindprof explain`: explains a trace in one page of Markdown.

use std::path::PathBuf;

use mindprof_answers::{Explanation, OwnCode, Work};
use mindprof_report::explain_text;

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_whole_analysis, tell_part};
use crate::output::print;

const EXAMPLE: &str = "\
Example:
  mindprof explain trace.json.gz > explanation.md

The page has the steps, the findings of `advise`, your functions and the
operators with most time. It is the same for the same trace.

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct ExplainArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Take files whose path contains TEXT as your code, instead of all that are not in a library;
    /// may be repeated.
    #[arg(long, value_name = "TEXT")]
    mine: Vec<String>,

    #[command(flatten)]
    limits: ReadLimits,
}

/// Explains a trace.
pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<Outcome> {
    let analysis = read_whole_analysis(&args.trace, args.limits)?;
    tell_part(&args.trace, &analysis);
    let own = OwnCode::of(analysis.profile().metadata(), &args.mine);
    let explanation = Explanation::build(&analysis, &Work::of(&analysis), &own);
    let name = args.trace.file_name().unwrap_or(args.trace.as_os_str());
    print(&explain_text(&explanation, &name.to_string_lossy()))?;
    Ok(Outcome::Fine)
}
