//! `mindprof steps`: prints what the time of each step was spent on, and which steps are slow.

use std::path::PathBuf;

use mindprof_answers::{OwnCode, StepTimes};
use mindprof_report::{StepsLayout, steps_text};

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_analysis, tell_part};
use crate::output::{print, print_line};
use crate::terminal::terminal_width;

const EXAMPLE: &str = "\
Example:
  mindprof steps trace.json.gz --row-limit 50

Each moment of a step counts for the first of these classes that anything runs
of: kernel, copy, memset, communication, runtime, data loading, operators,
Python, idle. The classes of a step sum to its wall time.

A step is slow if it exceeds the median by more than a quarter and by more than
five median absolute deviations.

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct StepsArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Take files whose path contains TEXT as your code, instead of all that are not in a library;
    /// may be repeated.
    #[arg(long, value_name = "TEXT")]
    mine: Vec<String>,

    /// List at most N steps; --json lists all.
    #[arg(long, alias = "limit", value_name = "N", default_value_t = 20)]
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

/// Prints the steps of a trace.
pub(crate) fn run(args: &StepsArgs) -> anyhow::Result<Outcome> {
    let analysis = read_analysis(&args.trace, args.limits)?;
    tell_part(&args.trace, &analysis);
    let own = OwnCode::of(analysis.profile().metadata(), &args.mine);
    let times = StepTimes::build(&analysis, &own);
    if args.json {
        print_line(&serde_json::to_string(&times)?)?;
        return Ok(Outcome::Fine);
    }
    let width = args
        .width
        .or_else(terminal_width)
        .filter(|&width| width > 0);
    let layout = StepsLayout {
        rows: args.row_limit,
        width,
    };
    print(&steps_text(&times, layout))?;
    Ok(Outcome::Fine)
}
