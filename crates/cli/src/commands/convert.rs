//! `mindprof convert`: writes a trace in another format.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use mindprof_formats::{Format, Written};
use serde::Serialize;

use crate::failure::Outcome;
use crate::form::{Form, choose, listed, values};
use crate::input::{ReadLimits, read, refuse_input};
use crate::output::{print_line, tell};
use crate::target::{Target, refuse_json};
use mindprof_formats::counted;

fn forms() -> Vec<Form<Format>> {
    Format::ALL.into_iter().map(Form::of).collect()
}

fn example() -> String {
    let formats = listed(&forms());
    format!(
        "\
Example:
  mindprof convert trace.json.gz trace.pftrace

{formats}

Exit codes: 0 success, 1 failure, 2 usage error"
    )
}

#[derive(Debug, clap::Args)]
#[command(after_help = example())]
pub(crate) struct ConvertArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "IN")]
    trace: PathBuf,

    #[command(flatten)]
    target: Target,

    /// Write FORMAT [default: by the extension of OUT]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = PossibleValuesParser::new(values(&forms())))]
    to: Option<String>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print a summary as JSON.
    #[arg(long)]
    json: bool,
}

/// Writes the trace, and reports the file and anything that the format cannot hold.
pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<Outcome> {
    let out = args.target.output();
    refuse_json(&out, args.json)?;
    let choice = choose(&forms(), args.to.as_deref(), &out)?;
    refuse_input(&args.trace, &out)?;
    let profile = read(&args.trace, args.limits)?.profile;
    let (events, format) = (profile.events().len(), choice.form.kind);
    let name = out.name();
    let (written, bytes) =
        out.write(choice.compression, |out| format.write(profile, &name, out))?;
    let Written {
        count: number,
        unit,
        notes,
    } = written;
    for note in notes {
        tell(&format!("warning: {}: {note}", args.trace.display()));
    }
    out.tell_written(bytes, &counted(number, unit));
    if args.json {
        let document = Document {
            input: args.trace.to_string_lossy(),
            output: name,
            format: args.to.as_deref().unwrap_or(format.name()),
            events,
            written: number,
            unit,
            bytes,
        };
        print_line(&serde_json::to_string_pretty(&document)?)?;
    }
    Ok(Outcome::Fine)
}

#[derive(Serialize)]
struct Document<'a> {
    input: std::borrow::Cow<'a, str>,
    output: String,
    format: &'a str,
    events: usize,
    written: u64,
    unit: &'a str,
    bytes: u64,
}
