//! `mindprof what-if`: says how long steps would take if some of their work were faster.

use std::path::PathBuf;

use mindprof_answers::{Changes, Prediction};
use mindprof_report::{not_changed_text, what_if_text};

use crate::failure::{Outcome, advised, misused};
use crate::input::{ReadLimits, read_analysis, tell_part};
use crate::output::{print, print_line};
use crate::terminal::terminal_width;

const EXAMPLE: &str = "\
Example:
  mindprof what-if trace.json.gz --scale optimizer=0.5
  mindprof what-if trace.json.gz --remove augment --no-synchronization

NAME is an operator, kernel, range, module or function: its whole name or a word
of it, in upper or lower case, or with * for any text. Everything inside of it
changes too: the operators that it calls, their kernels and backward work.

The steps are replayed: each piece of work begins as soon as the work that it
depends on has ended, so that removing what overlaps saves nothing.

Exit codes: 0 success, 1 failure, 2 usage error";

/// The tables of numbers need this much.
const LEAST_WIDTH: usize = 60;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command"
)]
pub(crate) struct WhatIfArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Multiply the time of what is called NAME, such as optimizer=0.5; may be repeated.
    #[arg(long, value_name = "NAME=FACTOR", value_parser = scale)]
    scale: Vec<(String, f64)>,

    /// Remove what is called NAME; may be repeated.
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,

    /// Let the CPU run on where it waits for the device.
    #[arg(long)]
    no_synchronization: bool,

    /// Let copies between the CPU and the device run beside other work.
    #[arg(long)]
    overlap_copies: bool,

    /// Let the next batch be there when the loop asks for it.
    #[arg(long)]
    no_data_loading: bool,

    /// Launch kernels as one CUDA graph: without the cost of operators, launches and the framework's
    /// Python code, but with data loading and your own functions.
    #[arg(long)]
    cuda_graphs: bool,

    /// Limit the width, to at least 60; 0 means no limit [default: terminal width]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn scale(text: &str) -> Result<(String, f64), String> {
    let expected =
        || "expected NAME=FACTOR with a factor from 0 to 1000, such as optimizer=0.5".to_owned();
    Changes::read_scale(text).ok_or_else(expected)
}

/// Prints how long the steps of a trace would take with changes.
pub(crate) fn run(args: &WhatIfArgs) -> anyhow::Result<Outcome> {
    let removed = args.remove.iter().map(|name| (name.clone(), 0.0));
    let changes = Changes {
        scales: args.scale.iter().cloned().chain(removed).collect(),
        no_synchronization: args.no_synchronization,
        overlap_copies: args.overlap_copies,
        no_data_loading: args.no_data_loading,
        cuda_graphs: args.cuda_graphs,
    };
    if changes.is_empty() {
        let hint = "use --scale NAME=0.5, --remove NAME, --no-synchronization, --overlap-copies, \
                    --no-data-loading or --cuda-graphs";
        return Err(misused("no change was given", hint));
    }
    let analysis = read_analysis(&args.trace, args.limits)?;
    tell_part(&args.trace, &analysis);
    let prediction = Prediction::build(&analysis, &changes).map_err(|reason| {
        let (message, hint) = not_changed_text(&reason);
        advised(message, hint)
    })?;
    if args.json {
        print_line(&prediction.json())?;
        return Ok(Outcome::Fine);
    }
    let width = args.width.or_else(terminal_width);
    let width = width.filter(|&width| width > 0);
    let width = width.map(|width| width.max(LEAST_WIDTH));
    print(&what_if_text(&prediction, width))?;
    Ok(Outcome::Fine)
}
