//! `mindprof convert`: a trace in another format.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mindprof_analyze::{Analysis, StackMetric};
use mindprof_formats::{
    write_folded_file, write_parquet_file, write_perfetto_file, write_speedscope_file,
    write_trace_file,
};
use mindprof_model::Profile;
use serde::Serialize;

use crate::failure::{Outcome, advised};
use crate::input::read;
use crate::output::print_line;
use crate::units::count;

const EXAMPLE: &str = "\
Example:
  mindprof convert trace.json.gz trace.pftrace

The end of the name OUT says the format:
  .json, .json.gz            a Chrome trace
  .pftrace, .perfetto-trace  Perfetto's own
  .speedscope.json           speedscope
  .folded                    folded stacks
  .parquet                   a table of the events, as Parquet
A further .gz compresses.

Exit codes: 0 it worked, 1 a file cannot be read or written, 2 the arguments make no sense";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct ConvertArgs {
    /// The trace: Chrome JSON, plain or compressed; - for stdin.
    #[arg(value_name = "IN")]
    trace: PathBuf,

    /// Where it is written to.
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// The format [default: what the end of OUT says]
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Option<Format>,

    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A Chrome trace, compressed if the name ends in .gz.
    Json,
    /// A Chrome trace with gzip.
    #[value(name = "json.gz")]
    JsonGz,
    /// Perfetto's own.
    Pftrace,
    /// speedscope.
    Speedscope,
    /// Folded stacks, weighed by time on the host.
    Folded,
    /// The events as a table, as Parquet.
    Parquet,
}

/// The ends of names, the longer of those that overlap first.
const ENDS: [(&str, Format); 7] = [
    (".speedscope.json", Format::Speedscope),
    (".json", Format::Json),
    (".pftrace", Format::Pftrace),
    (".perfetto-trace", Format::Pftrace),
    (".folded", Format::Folded),
    (".stacks.txt", Format::Folded),
    (".parquet", Format::Parquet),
];

/// Writes the trace and says what was written.
pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<Outcome> {
    let format = format(args)?;
    let profile = read(&args.trace)?.profile;
    let events = profile.events().len();
    write(profile, format, &args.out)?;
    // What cannot be asked for its size, as a pipe, has none to tell.
    let bytes = std::fs::metadata(&args.out).map_or(0, |found| found.len());
    let document = Document {
        input: args.trace.to_string_lossy(),
        output: args.out.to_string_lossy(),
        format: name(format),
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

fn write(profile: Profile, format: Format, out: &Path) -> mindprof_formats::Result<()> {
    match format {
        Format::Json | Format::JsonGz => write_trace_file(&profile, out),
        Format::Pftrace => write_perfetto_file(&profile, out),
        Format::Speedscope => write_speedscope_file(&Analysis::build(profile), out),
        Format::Folded => {
            write_folded_file(&Analysis::build(profile), StackMetric::SelfCpuTime, out)
        }
        Format::Parquet => write_parquet_file(&Analysis::build(profile), out),
    }
}

fn format(args: &ConvertArgs) -> anyhow::Result<Format> {
    let full_name = args.out.to_string_lossy();
    let plain_name = full_name.strip_suffix(".gz");
    if args.to == Some(Format::JsonGz) && plain_name.is_none() {
        let hint = format!("name it {full_name}.gz");
        return Err(advised(
            "what is compressed has a name that ends in .gz",
            hint,
        ));
    }
    let name = plain_name.unwrap_or(&full_name);
    let by_name = ENDS.iter().find(|(end, _)| name.ends_with(end));
    let found = args.to.or(by_name.map(|(_, format)| *format));
    found.ok_or_else(|| {
        let message = format!("{full_name}: the end of the name says no format");
        advised(message, "say it with --to")
    })
}

fn name(format: Format) -> String {
    let value = format.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().into())
}

#[derive(Serialize)]
struct Document<'a> {
    input: std::borrow::Cow<'a, str>,
    output: std::borrow::Cow<'a, str>,
    format: String,
    events: usize,
    bytes: u64,
}
