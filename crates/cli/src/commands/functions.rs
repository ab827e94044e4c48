//! `mindprof functions` and `mindprof lines`: print the user's own functions or lines with their
//! cost.

use std::path::PathBuf;

use mindprof_answers::{Functions, OwnCode, Work};
use mindprof_report::{CodeLayout, functions_text, lines_text};

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_analysis};
use crate::output::{print, print_line};
use crate::terminal::terminal_width;

const EXAMPLE: &str = "\
Example:
  mindprof functions trace.json.gz --mine src/

Own time is that of the function's own code and of the operators and libraries
that it calls; time of backward operators counts at the line of their forward
operator. Total time includes your other functions that it calls.

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct FunctionsArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Take files whose path contains TEXT as your code, instead of all that are not in a library;
    /// may be repeated.
    #[arg(long, value_name = "TEXT")]
    mine: Vec<String>,

    /// Show at most N rows [default: 20; all with --json]
    #[arg(long, value_name = "N", default_value_t = 20)]
    row_limit: usize,

    /// Limit the width; 0 means no limit [default: terminal width]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl FunctionsArgs {
    fn functions(&self) -> anyhow::Result<Functions> {
        let analysis = read_analysis(&self.trace, self.limits)?;
        let own = OwnCode::of(analysis.profile().metadata(), &self.mine);
        Ok(Functions::build(&analysis, &Work::of(&analysis), &own))
    }

    fn layout(&self) -> CodeLayout {
        let asked = self.width.or_else(terminal_width);
        CodeLayout {
            rows: self.row_limit,
            width: asked.filter(|&width| width > 0),
        }
    }
}

/// Prints the functions of a trace.
pub(crate) fn run(args: &FunctionsArgs) -> anyhow::Result<Outcome> {
    let functions = args.functions()?;
    if args.json {
        print_line(&serde_json::to_string(&functions)?)?;
    } else {
        print(&functions_text(&functions, args.layout()))?;
    }
    Ok(Outcome::Fine)
}

/// Prints the lines of a trace.
pub(crate) fn run_lines(args: &FunctionsArgs) -> anyhow::Result<Outcome> {
    let functions = args.functions()?;
    if args.json {
        print_line(&serde_json::to_string(&functions)?)?;
    } else {
        print(&lines_text(&functions, args.layout()))?;
    }
    Ok(Outcome::Fine)
}
