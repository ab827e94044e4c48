//! `mindprof device`: prints how devices were used, and why they were idle.

use std::path::PathBuf;

use mindprof_answers::Device;
use mindprof_report::{DeviceLayout, device_text};

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_whole_analysis, tell_part};
use crate::output::{print, print_line};
use crate::terminal::terminal_width;

const EXAMPLE: &str = "\
Example:
  mindprof device trace.json.gz --row-limit 20

Busy time is a union over the streams of a device, so it never exceeds the time.
Idle time has one of these causes: the CPU had not launched the next work (CPU
late) or was in a synchronizing call (synchronization), the next work was being
launched (launch) or waited for another stream, no work followed (end of work),
or nothing that was recorded explains it (unknown).

A step lasts until the last work that was launched in it has ended.

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct DeviceArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// List at most N streams, operators, kernels and steps; --json lists all.
    #[arg(long, alias = "limit", value_name = "N", default_value_t = 8)]
    row_limit: usize,

    /// Limit the width, to at least 80; 0 means no limit [default: terminal width]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the use of the devices of a trace.
pub(crate) fn run(args: &DeviceArgs) -> anyhow::Result<Outcome> {
    let analysis = read_whole_analysis(&args.trace, args.limits)?;
    tell_part(&args.trace, &analysis);
    let device = Device::build(&analysis);
    if args.json {
        print_line(&serde_json::to_string(&device)?)?;
        return Ok(Outcome::Fine);
    }
    let width = args
        .width
        .or_else(terminal_width)
        .filter(|&width| width > 0);
    let layout = DeviceLayout {
        rows: args.row_limit,
        width,
    };
    print(&device_text(&device, layout))?;
    Ok(Outcome::Fine)
}
