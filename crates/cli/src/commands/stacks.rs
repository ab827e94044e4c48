//! `mindprof stacks`: where time was spent, by who called, as folded text, flame graph or
//! speedscope file.

use std::path::PathBuf;

use mindprof_analyze::{Analysis, StackMetric};
use mindprof_formats::{
    paths_json, stack_metric, write_folded, write_paths, write_speedscope_file,
};
use mindprof_report::write_flamegraph_file;

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_known};
use crate::output::{print, print_line, tell};

const EXAMPLE: &str = "\
Example:
  mindprof stacks trace.json.gz --svg flames.svg

Exit codes: 0 it worked, 1 a file cannot be read or written, 2 the arguments make no sense";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct StacksArgs {
    /// The trace: Chrome JSON, plain or compressed; - for stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// What stacks are weighed by: `self_cpu_time_total`, or of devices `self_cuda_time_total`,
    /// `self_xpu_time_total`, `self_privateuse1_time_total`.
    #[arg(long, value_name = "METRIC", default_value = "self_cpu_time_total", value_parser = stack_metric)]
    metric: StackMetric,

    /// Prints whole paths, each once: the callers, then the scopes inside of each other. Without
    /// this, one line per event with the callers alone, as `export_stacks` writes them; a
    /// trace without stacks has only scopes to show.
    #[arg(long)]
    scopes: bool,

    /// Writes a flame graph to this file instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speedscope", "json", "scopes"])]
    svg: Option<PathBuf>,

    /// Writes a file for speedscope instead, with the time of each thread.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "scopes"])]
    speedscope: Option<PathBuf>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Prints JSON: whole paths, each once.
    #[arg(long)]
    json: bool,
}

/// Prints or writes the stacks.
pub(crate) fn run(args: &StacksArgs) -> anyhow::Result<Outcome> {
    let analysis = Analysis::build(read_known(&args.trace, args.limits)?.profile);
    if let Some(path) = &args.svg {
        write_flamegraph_file(&analysis, args.metric, path)?;
    } else if let Some(path) = &args.speedscope {
        write_speedscope_file(&analysis, path)?;
    } else if args.json {
        print_line(&paths_json(&analysis, args.metric))?;
    } else {
        print(&text(args, &analysis)?)?;
    }
    Ok(Outcome::Fine)
}

fn text(args: &StacksArgs, analysis: &Analysis) -> anyhow::Result<String> {
    let mut text = Vec::new();
    let has_stacks = !analysis.profile().stacks().is_empty();
    if has_stacks && !args.scopes {
        write_folded(analysis, args.metric, &mut text)?;
    } else {
        write_paths(analysis, args.metric, &mut text)?;
    }
    let lack = if text.is_empty() {
        Some("has no time to show")
    } else if !has_stacks && !args.scopes {
        Some("has no stacks (record with with_stack=True), scopes are shown instead")
    } else {
        None
    };
    if let Some(lack) = lack {
        let path = args.trace.display();
        tell(&format!("warning: {path}: {lack}"));
    }
    Ok(String::from_utf8(text)?)
}
