//! `mindprof critical-path`: prints what determines the time of steps, and what would save most.

use std::path::PathBuf;

use mindprof_analyze::Analysis;
use mindprof_answers::{CriticalPath, OwnCode, PathOptions, Timing};
use mindprof_formats::{Format, counted, write_critical_path};
use mindprof_report::{CodeLayout, critical_path_text};
use mindprof_trace::TraceFormat;

use crate::commands::functions::Code;
use crate::failure::{Outcome, misused};
use crate::input::{ReadLimits, read, read_analysis, refuse_input, tell_part};
use crate::output::{Output, print, print_line};
use crate::terminal::terminal_width;

const EXAMPLE: &str = "\
Example:
  mindprof critical-path trace.json.gz --out path.json.gz

The critical path is the chain of work and waiting, over threads, launches,
streams and synchronization, that determines when the last step is complete.
What is not on it overlaps with it, and saves nothing.

With --out, a copy of the trace has the path as a track of its own, and arrows
where it leads from one thread or stream to another.

Exit codes: 0 success, 1 failure, 2 usage error";

/// The numbers of rows if none is asked for.
const ROWS: usize = 5;
const ROWS_OF_JSON: usize = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct CriticalPathArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Write a copy of the trace with the path in it, such as path.json.gz.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Count the profiler's own cost: show the path of the recorded times.
    #[arg(long)]
    recorded: bool,

    #[command(flatten)]
    code: Code,

    /// Show at most N functions, modules, operators and kernels each [default: 5, with --json 100].
    #[arg(long, alias = "limit", value_name = "N")]
    row_limit: Option<usize>,

    /// Limit the width, to at least 60; 0 means no limit [default: terminal width]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the critical path of a trace, and writes a trace with it if asked to.
pub(crate) fn run(args: &CriticalPathArgs) -> anyhow::Result<Outcome> {
    let out = args.out.as_deref().map(Output::of);
    if let Some(out) = &out {
        refuse_other(out)?;
        refuse_input(&args.trace, out)?;
    }
    let analysis = match out {
        // Only a copy of the trace needs what the profile has no place for.
        Some(_) => Analysis::build(read(&args.trace, args.limits)?.profile),
        None => read_analysis(&args.trace, args.limits)?,
    };
    tell_part(&args.trace, &analysis);
    let own = OwnCode::of(analysis.profile().metadata(), &args.code.mine);
    let usual = if args.json { ROWS_OF_JSON } else { ROWS };
    let rows = args.row_limit.unwrap_or(usual);
    let options = PathOptions {
        rows,
        timing: if args.recorded {
            Timing::Recorded
        } else {
            Timing::Unrecorded
        },
    };
    let path = CriticalPath::build(&analysis, &own, options);
    if args.json {
        print_line(&path.json())?;
    } else {
        let asked = args.width.or_else(terminal_width);
        let layout = CodeLayout {
            rows,
            width: asked.filter(|&width| width > 0),
        };
        print(&critical_path_text(&path, layout))?;
    }
    if let Some(out) = out {
        let profile = analysis.profile().clone();
        let name = out.name();
        let ((), bytes) = out.write(None, |file| {
            write_critical_path(profile, &path, &name, file)
        })?;
        out.tell_written(bytes, &counted(path.pieces.len() as u64, "piece"));
    }
    Ok(Outcome::Fine)
}

/// Returns an error if the output is not the file of a Chrome trace.
fn refuse_other(out: &Output) -> anyhow::Result<()> {
    let is_chrome = match out {
        Output::Stdout => false,
        Output::File(path) => Format::of(path).and_then(Format::trace) == Some(TraceFormat::Chrome),
    };
    if is_chrome {
        return Ok(());
    }
    let message = format!(
        "{}: a critical path is written to Chrome traces only",
        out.name()
    );
    Err(misused(
        message,
        "use a name that ends with .json or .json.gz",
    ))
}
