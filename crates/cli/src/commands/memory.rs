//! `mindprof memory`: how much memory was in use when, by what for.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use mindprof_analyze::{Analysis, MemoryDevice};
use mindprof_formats::{
    memory_device, memory_device_name, memory_summary_json, write_memory_timeline,
    write_memory_timeline_raw,
};
use mindprof_report::{memory_summary, write_memory_timeline_html};

use crate::failure::{Outcome, advised};
use crate::form::{Choice, Form, choose, values};
use crate::input::{ReadLimits, read_analysis};
use crate::output::{Output, print, print_line};

/// What a timeline is written as.
#[derive(Clone, Copy, Debug)]
enum Timeline {
    Points,
    Changes,
    Page,
}

const FORMS: [Form<Timeline>; 3] = [
    Form {
        name: "json",
        endings: &[".json"],
        description: "the points of the timeline",
        is_text: true,
        kind: Timeline::Points,
    },
    Form {
        name: "raw.json",
        endings: &[".raw.json"],
        description: "every change",
        is_text: true,
        kind: Timeline::Changes,
    },
    Form {
        name: "html",
        endings: &[".html"],
        description: "a page",
        is_text: true,
        kind: Timeline::Page,
    },
];

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

    /// Writes the timeline to this file instead: a page (.html), points (.json) or every change
    /// (.raw.json); a further .gz or .zst compresses. - for stdout.
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    out: Option<PathBuf>,

    /// What the file is [default: what its name says; on stdout json]
    #[arg(long, value_name = "FORMAT", requires = "out", value_parser = PossibleValuesParser::new(values(&FORMS)))]
    to: Option<String>,

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
    let out = args.out.as_deref().map(Output::of);
    let choice = out
        .as_ref()
        .map(|out| choose(&FORMS, args.to.as_deref(), out));
    let choice = choice.transpose()?;
    let analysis = read_analysis(&args.trace, args.limits)?;
    let devices = devices(args, &analysis)?;
    if let Some((out, choice)) = out.zip(choice) {
        write(&analysis, devices[0], &out, choice)?;
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

fn write(
    analysis: &Analysis,
    device: MemoryDevice,
    out: &Output,
    choice: Choice<Timeline>,
) -> anyhow::Result<()> {
    let ((), bytes) = out.write(choice.compression, |out| match choice.form.kind {
        Timeline::Points => write_memory_timeline(analysis, device, out),
        Timeline::Changes => write_memory_timeline_raw(analysis, device, out),
        Timeline::Page => write_memory_timeline_html(analysis, device, out),
    })?;
    out.tell_written(
        bytes,
        &format!("the memory of {}", memory_device_name(device)),
    );
    Ok(())
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
