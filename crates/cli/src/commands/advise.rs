//! `mindprof advise`: prints why a program is slow, what mending it would save, and what to try.

use std::path::PathBuf;

use mindprof_answers::{Advice, OwnCode};
use mindprof_report::{AdviceLayout, advice_text, refusal_hint, refusal_text};

use crate::failure::{Outcome, advised};
use crate::input::{ReadLimits, read_whole_analysis, tell_part};
use crate::output::{print, print_line, tell};
use crate::terminal::terminal_width;
use crate::units::{self, Percent};

const EXAMPLE: &str = "\
Example:
  mindprof advise trace.json.gz
  mindprof advise trace.json.gz --fail-over 5%

A finding's share is the part of the step time that mending it would save. It
comes from a replay of the trace without the cause, so work that overlaps with
other work costs nothing, and the profiler's own cost is left out.

Exit codes: 0 success, 1 over the limit, 2 not judged, failure or usage
error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct AdviseArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Take files whose path contains TEXT as your code, instead of all that are not in a library;
    /// may be repeated.
    #[arg(long, value_name = "TEXT")]
    mine: Vec<String>,

    /// Exit with 1 if a finding would save more than PERCENT of the step.
    #[arg(long, value_name = "PERCENT", value_parser = units::percent, allow_hyphen_values = true)]
    fail_over: Option<Percent>,

    /// Judge an incomplete trace too: lost events, a damaged file, a cut of `slim`, missing device work.
    #[arg(long, requires = "fail_over")]
    allow_incomplete: bool,

    /// Print at most N findings; --json lists all.
    #[arg(long, alias = "limit", value_name = "N", default_value_t = 10)]
    row_limit: usize,

    /// List the rules that found nothing and those that cannot tell, too.
    #[arg(long)]
    all: bool,

    /// Limit the width, to at least 40; 0 means no limit [default: terminal width]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the advice for a trace.
pub(crate) fn run(args: &AdviseArgs) -> anyhow::Result<Outcome> {
    let analysis = read_whole_analysis(&args.trace, args.limits)?;
    tell_part(&args.trace, &analysis);
    let own = OwnCode::of(analysis.profile().metadata(), &args.mine);
    let advice = Advice::build(&analysis, &own);
    if args.json {
        print_line(&advice.json())?;
    } else {
        let width = args.width.or_else(terminal_width);
        let layout = AdviceLayout {
            findings: args.row_limit,
            all_rules: args.all,
            width: width.filter(|&width| width > 0),
        };
        print(&advice_text(&advice, layout))?;
        if advice.findings.is_empty() && advice.steps > 0 {
            tell(&format!(
                "next: mindprof functions {} shows where the time is spent",
                args.trace.display()
            ));
        }
    }
    let Some(limit) = args.fail_over else {
        return Ok(Outcome::Fine);
    };
    if advice.steps == 0 {
        return Err(advised(
            "no work on the CPU to judge: the limit does not apply",
            "record the program's operators too",
        ));
    }
    let refused = advice.incomplete.first().filter(|_| !args.allow_incomplete);
    if let Some(&refusal) = refused {
        let message = format!("{}: {}", args.trace.display(), refusal_text(refusal));
        return Err(advised(message, refusal_hint(refusal)));
    }
    if advice.is_doubtful && !args.allow_incomplete {
        let message = format!(
            "{}: a replay takes far more or far less time than the recording, so nothing is priced",
            args.trace.display()
        );
        let hint = "record the device's launches too, or use --allow-incomplete";
        return Err(advised(message, hint));
    }
    if let Some(doubt) = limit.doubt() {
        tell(&doubt);
    }
    let over = |share: f64| share > limit.part;
    match advice.findings.iter().find(|finding| over(finding.share)) {
        Some(finding) => {
            tell(&format!(
                "over the limit of {limit}: {} would save {:.1}% of the step",
                finding.rule.id,
                finding.share * 100.0
            ));
            Ok(Outcome::Found)
        }
        None => Ok(Outcome::Fine),
    }
}
