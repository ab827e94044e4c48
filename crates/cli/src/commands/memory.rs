//! `mindprof memory`: how much memory was in use when, by what for.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use mindprof_analyze::{Analysis, MemoryDevice, MemoryPlace};
use mindprof_formats::{
    memory_device, memory_device_name, memory_place_name, memory_summary_json,
    write_memory_timeline, write_memory_timeline_raw,
};
use mindprof_report::{memory_summary, write_memory_timeline_html};

use crate::failure::{Outcome, advised};
use crate::form::{Choice, Form, choose, values};
use crate::input::{ReadLimits, read_analysis};
use crate::output::{Output, print, print_line, tell};

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

    /// Of which process, such as a worker of a data loader [default: each that has memory, the one
    /// with the most first; a file is of that one]
    #[arg(long, value_name = "PID")]
    process: Option<u64>,

    /// Writes the timeline to this file instead: a page (.html), points (.json) or every change
    /// (.raw.json); a further .gz or .zst compresses. - for stdout.
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    out: Option<PathBuf>,

    /// What the file is [default: what its name says; on stdout json]
    #[arg(long, value_name = "FORMAT", requires = "out", value_parser = PossibleValuesParser::new(values(&FORMS)))]
    to: Option<String>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Prints JSON: one entry for each device of each process.
    #[arg(long)]
    json: bool,
}

fn device(text: &str) -> Result<MemoryDevice, String> {
    memory_device(text).map_err(|error| error.to_string())
}

/// Prints the memory of each process on each device, or writes the timeline of one.
pub(crate) fn run(args: &MemoryArgs) -> anyhow::Result<Outcome> {
    let out = args.out.as_deref().map(Output::of);
    let choice = out
        .as_ref()
        .map(|out| choose(&FORMS, args.to.as_deref(), out));
    let choice = choice.transpose()?;
    let analysis = read_analysis(&args.trace, args.limits)?;
    let places = places(args, &analysis)?;
    if let Some((out, choice)) = out.zip(choice) {
        write(&analysis, places[0], &out, choice)?;
        tell_others(&analysis, &places[1..]);
    } else if args.json {
        let summaries = places.iter();
        let summaries = summaries.map(|&place| memory_summary_json(&analysis, place));
        let summaries: Vec<serde_json::Value> = summaries.collect();
        print_line(&serde_json::to_string_pretty(&summaries)?)?;
    } else {
        let summaries = places.iter();
        let summaries = summaries.map(|&place| memory_summary(&analysis, place));
        let summaries: Vec<String> = summaries.collect();
        print(&summaries.join("\n"))?;
    }
    Ok(Outcome::Fine)
}

fn write(
    analysis: &Analysis,
    place: MemoryPlace,
    out: &Output,
    choice: Choice<Timeline>,
) -> anyhow::Result<()> {
    let ((), bytes) = out.write(choice.compression, |out| match choice.form.kind {
        Timeline::Points => Ok(write_memory_timeline(analysis, place, out)?),
        Timeline::Changes => Ok(write_memory_timeline_raw(analysis, place, out)?),
        Timeline::Page => write_memory_timeline_html(analysis, place, out),
    })?;
    out.tell_written(
        bytes,
        &format!("the memory of {}", memory_place_name(analysis, place)),
    );
    Ok(())
}

/// Says which memory the file has no timeline of, where nobody said which it should have.
fn tell_others(analysis: &Analysis, others: &[MemoryPlace]) {
    if !others.is_empty() {
        tell(&format!(
            "not in it: the memory of {}",
            names(analysis, others)
        ));
    }
}

/// Returns the memory that was asked for, or all that there is, that with the highest peak first.
fn places(args: &MemoryArgs, analysis: &Analysis) -> anyhow::Result<Vec<MemoryPlace>> {
    let known = analysis.memory_timeline().places_by_peak(analysis);
    let path = args.trace.display();
    if known.is_empty() {
        let message = format!("{path}: no memory was recorded");
        return Err(advised(
            message,
            "record with profile_memory=True, or mindprof run --memory --shapes",
        ));
    }
    let is_wanted = |place: &MemoryPlace| {
        args.device.is_none_or(|device| device == place.device)
            && args.process.is_none_or(|process| process == place.process)
    };
    let wanted: Vec<MemoryPlace> = known.iter().copied().filter(is_wanted).collect();
    if !wanted.is_empty() {
        return Ok(wanted);
    }
    let device = args.device.map(memory_device_name);
    let process = args.process.map(|process| format!("process {process}"));
    let asked: Vec<String> = device.into_iter().chain(process).collect();
    let message = format!("{path}: no memory of {} was recorded", asked.join(" of "));
    let hint = format!("there is some of {}", names(analysis, &known));
    Err(advised(message, hint))
}

fn names(analysis: &Analysis, places: &[MemoryPlace]) -> String {
    let names = places.iter();
    let names: Vec<String> = names
        .map(|&place| memory_place_name(analysis, place))
        .collect();
    names.join(", ")
}
