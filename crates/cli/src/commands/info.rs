//! `mindprof info`: what a trace holds.

use std::path::PathBuf;

use mindprof_analyze::Analysis;
use mindprof_answers::{SideRanges, Summary};
use mindprof_formats::{Info, WorkTotals};
use mindprof_report::info_text;

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_quietly};
use crate::output::{print, print_line};

const EXAMPLE: &str = "\
Example:
  mindprof info trace.json.gz

Exit codes: 0 it worked, 1 the file cannot be read, 2 the arguments make no sense";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct InfoArgs {
    /// The trace: Chrome JSON, plain or compressed; - for stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    #[command(flatten)]
    limits: ReadLimits,

    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the numbers of a trace.
pub(crate) fn run(args: &InfoArgs) -> anyhow::Result<Outcome> {
    let reading = read_quietly(&args.trace, args.limits)?;
    // Only a run leaves something out, and only then is the analysis worth its time.
    let work = SideRanges::read(&reading.profile)
        .and_then(|_| WorkTotals::of(&Analysis::build(reading.profile.clone())));
    let info = Info {
        profile: &reading.profile,
        summary: &Summary::build(&reading.profile),
        work,
        repairs: &reading.repairs,
        set_aside: &reading.set_aside,
        left_out: &reading.left_out,
        unknown_categories: &reading.unknown_categories,
    };
    if args.json {
        print_line(&info.json())?;
    } else {
        print(&info_text(&info))?;
    }
    Ok(Outcome::Fine)
}
