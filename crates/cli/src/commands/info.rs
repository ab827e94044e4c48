//! `mindprof info`: prints the contents of a trace: counts, threads, steps, loss and metadata.

use std::path::PathBuf;

use mindprof_analyze::Analysis;
use mindprof_answers::{SideRanges, Summary, Work, WorkTotals};
use mindprof_formats::Info;
use mindprof_report::info_text;

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_quietly};
use crate::output::{print, print_line};

const EXAMPLE: &str = "\
Example:
  mindprof info trace.json.gz

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct InfoArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the summary of a trace.
pub(crate) fn run(args: &InfoArgs) -> anyhow::Result<Outcome> {
    let reading = read_quietly(&args.trace, args.limits)?;
    // Only traces of `mindprof run` omit ranges from their totals; others need no analysis.
    let work = SideRanges::read(&reading.profile).map(|side| {
        let analysis = Analysis::build(reading.profile.clone());
        WorkTotals::build(&analysis, &Work::without(side))
    });
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
