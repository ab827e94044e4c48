//! `mindprof memory`: how much memory was in use when, by what for.

use std::fs;
use std::path::{Path, PathBuf};

use mindprof_analyze::{Analysis, MemoryDevice};
use mindprof_formats::{memory_device, memory_device_name, memory_summary_json};
use mindprof_report::{memory_summary, write_memory_timeline_file};

use crate::failure::{Outcome, advised};
use crate::input::{ReadLimits, read_known};
use crate::output::{print, print_line};

const EXAMPLE: &str = "\
Example:
  mindprof memory trace.json.gz --out memory.html

A trace tells when blocks were taken and given back, how large they are and who asked for them; what they were for it does
not tell, so they are of the category `unknown` unless the program itself made the timeline while it ran.

Exit codes: 0 it worked, 1 a file cannot be read or written, 2 the arguments make no sense";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct MemoryArgs {
    /// The trace: Chrome JSON, plain or compressed; - for stdin. Recorded with `profile_memory=True`.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Of which device: cpu, cuda:0 [default: each that has memory, the one with the most first; a
    /// file is of that one]
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    device: Option<MemoryDevice>,

    /// Writes the timeline to this file instead: a page (.html), points (.json, .json.gz) or every
    /// change (.raw.json.gz).
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    out: Option<PathBuf>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Prints JSON: one entry for each device.
    #[arg(long)]
    json: bool,
}

fn device(text: &str) -> Result<MemoryDevice, String> {
    memory_device(text).map_err(|error| error.to_string())
}

/// Prints the memory of each device, or writes the timeline of one.
pub(crate) fn run(args: &MemoryArgs) -> anyhow::Result<Outcome> {
    if let Some(path) = &args.out {
        check_name(path)?;
    }
    let analysis = Analysis::build(read_known(&args.trace, args.limits)?.profile);
    let devices = devices(args, &analysis)?;
    if let Some(path) = &args.out {
        write_memory_timeline_file(&analysis, devices[0], path)?;
    } else if args.json {
        let summaries = devices.iter();
        let summaries = summaries.map(|&device| memory_summary_json(&analysis, device));
        let summaries: Vec<serde_json::Value> = summaries.collect();
        print_line(&serde_json::to_string_pretty(&summaries)?)?;
    } else {
        let summaries = devices.iter();
        let summaries = summaries.map(|&device| memory_summary(&analysis, device));
        let summaries: Vec<String> = summaries.collect();
        print(&summaries.join("\n"))?;
    }
    Ok(Outcome::Fine)
}

/// Refuses a name that says what the timeline is not. Pipes and devices have any.
fn check_name(path: &Path) -> anyhow::Result<()> {
    let name = path.to_string_lossy();
    let is_known = [".html", ".json", ".json.gz"]
        .iter()
        .any(|end| name.ends_with(end));
    let is_pipe = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    if is_known || is_pipe {
        return Ok(());
    }
    let message = format!("{name}: the end of the name says no form of a timeline");
    let hint = "end it in .html, .json, .json.gz or .raw.json.gz";
    Err(advised(message, hint))
}

/// Returns the device that was asked for, or all that have memory, that with the most first.
fn devices(args: &MemoryArgs, analysis: &Analysis) -> anyhow::Result<Vec<MemoryDevice>> {
    let known = analysis.memory_timeline().devices_by_peak(analysis);
    let path = args.trace.display();
    if known.is_empty() {
        let message = format!("{path}: no memory was recorded");
        return Err(advised(message, "record with profile_memory=True"));
    }
    match args.device {
        None => Ok(known),
        Some(device) if known.contains(&device) => Ok(vec![device]),
        Some(device) => {
            let names: Vec<String> = known.into_iter().map(memory_device_name).collect();
            let name = memory_device_name(device);
            let message = format!("{path}: no memory of {name} was recorded");
            Err(advised(
                message,
                format!("there is some of {}", names.join(", ")),
            ))
        }
    }
}
