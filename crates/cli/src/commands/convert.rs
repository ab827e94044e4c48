//! `mindprof convert`: a trace in another format.

use std::fmt::Write;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use mindprof_formats::Format;
use serde::Serialize;

use crate::failure::{Outcome, advised};
use crate::input::{ReadLimits, read, refuse_input};
use crate::output::print_line;
use crate::units::count;

/// Asks for a Chrome trace that is compressed.
const COMPRESSED: &str = "json.gz";

fn example() -> String {
    let mut formats = String::new();
    for format in Format::ALL {
        let (endings, what) = (format.endings().join(", "), format.description());
        let _ = writeln!(formats, "  {endings:<26} {what}");
    }
    format!(
        "\
Example:
  mindprof convert trace.json.gz trace.pftrace

The end of the name OUT says the format:
{formats}A further .gz compresses.

Exit codes: 0 it worked, 1 a file cannot be read or written, 2 the arguments make no sense"
    )
}

fn possible_formats() -> Vec<PossibleValue> {
    let value = |format: Format| PossibleValue::new(format.name()).help(format.description());
    let mut values = Format::ALL.map(value).to_vec();
    values.insert(
        1,
        PossibleValue::new(COMPRESSED).help("a Chrome trace with gzip"),
    );
    values
}

#[derive(Debug, clap::Args)]
#[command(after_help = example())]
pub(crate) struct ConvertArgs {
    /// The trace: Chrome JSON, plain or compressed; - for stdin.
    #[arg(value_name = "IN")]
    trace: PathBuf,

    /// Where it is written to.
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// The format [default: what the end of OUT says]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(possible_formats()))]
    to: Option<String>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Writes the trace and says what was written.
pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<Outcome> {
    let format = format(args)?;
    refuse_input(&args.trace, &args.out)?;
    let profile = read(&args.trace, args.limits)?.profile;
    let events = profile.events().len();
    format.write(profile, &args.out)?;
    // What cannot be asked for its size, as a pipe, has none to tell.
    let bytes = std::fs::metadata(&args.out).map_or(0, |found| found.len());
    let document = Document {
        input: args.trace.to_string_lossy(),
        output: args.out.to_string_lossy(),
        format: args.to.as_deref().unwrap_or(format.name()),
        events,
        bytes,
    };
    if args.json {
        print_line(&serde_json::to_string_pretty(&document)?)?;
    } else {
        let Document { output, format, .. } = document;
        let events = count(events as u64, "event");
        print_line(&format!(
            "wrote {output} ({format}), {events}, {bytes} bytes"
        ))?;
    }
    Ok(Outcome::Fine)
}

fn format(args: &ConvertArgs) -> anyhow::Result<Format> {
    let name = args.out.to_string_lossy();
    let found = match args.to.as_deref() {
        Some(COMPRESSED) if !name.to_ascii_lowercase().ends_with(".gz") => {
            let hint = format!("name it {name}.gz");
            return Err(advised(
                "what is compressed has a name that ends in .gz",
                hint,
            ));
        }
        Some(COMPRESSED) => Some(Format::Chrome),
        Some(format) => Format::named(format),
        None => Format::of(&args.out),
    };
    found.ok_or_else(|| {
        let message = format!("{name}: the end of the name says no format");
        advised(message, "say it with --to")
    })
}

#[derive(Serialize)]
struct Document<'a> {
    input: std::borrow::Cow<'a, str>,
    output: std::borrow::Cow<'a, str>,
    format: &'a str,
    events: usize,
    bytes: u64,
}
