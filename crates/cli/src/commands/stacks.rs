//! `mindprof stacks`: where time was spent, by who called, as folded text, flame graph or
//! speedscope file.

use std::io::Write;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use mindprof_analyze::{Analysis, PATH_LEVELS, StackMetric};
use mindprof_formats::{
    Error, FoldedLines, Format, NO_STACKS, Result, STACK_METRICS, cut_levels, paths_json,
    stack_metric, write_callers, write_paths, write_speedscope,
};
use mindprof_report::{Error as ReportError, write_flamegraph};

use crate::failure::Outcome;
use crate::form::{Choice, Form, choose, values};
use crate::input::{ReadLimits, read_analysis};
use crate::known::KnownValues;
use crate::output::{Output, print, print_line, tell};
use crate::units::count;

const EXAMPLE: &str = "\
Example:
  mindprof stacks trace.json.gz --out flames.svg

Exit codes: 0 it worked, 1 a file cannot be read or written, 2 the arguments make no sense";

/// What stacks are written as.
#[derive(Clone, Copy, Debug)]
enum Stacks {
    Lines,
    Picture,
    Speedscope,
}

const FORMS: [Form<Stacks>; 3] = [
    of_format(Format::Folded, Stacks::Lines),
    Form {
        name: "svg",
        endings: &[".svg"],
        description: "a flame graph",
        is_text: true,
        kind: Stacks::Picture,
    },
    of_format(Format::Speedscope, Stacks::Speedscope),
];

const fn of_format(format: Format, kind: Stacks) -> Form<Stacks> {
    Form {
        name: format.name(),
        endings: format.endings(),
        description: format.description(),
        is_text: format.is_text(),
        kind,
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct StacksArgs {
    /// The trace: Chrome JSON, plain or compressed; - for stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// What stacks are weighed by: time on the host, or on devices of any kind.
    #[arg(long, value_name = "METRIC", default_value = "self_cpu_time_total", value_parser = metrics())]
    metric: StackMetric,

    /// Prints whole paths: the callers, then the scopes inside of each other. Without this, the
    /// callers alone; a trace without stacks has only scopes to show. Each path is one line.
    #[arg(long)]
    scopes: bool,

    /// Writes to this file instead: a flame graph (.svg), the time of each thread for speedscope
    /// (.speedscope.json) or the lines (.folded, .stacks.txt); a further .gz or .zst compresses. -
    /// for stdout.
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    out: Option<PathBuf>,

    /// What the file is [default: what its name says; on stdout folded]
    #[arg(long, value_name = "FORMAT", requires = "out", value_parser = PossibleValuesParser::new(values(&FORMS)))]
    to: Option<String>,

    /// As `--out FILE --to svg`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "speedscope", "json", "scopes"])]
    svg: Option<PathBuf>,

    /// As `--out FILE --to speedscope`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "json", "scopes"])]
    speedscope: Option<PathBuf>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Prints JSON: whole paths, each once.
    #[arg(long)]
    json: bool,
}

fn metrics() -> KnownValues<StackMetric> {
    KnownValues::new(STACK_METRICS, |name| {
        stack_metric(name).map_err(|error| error.to_string())
    })
}

/// Prints or writes the stacks.
pub(crate) fn run(args: &StacksArgs) -> anyhow::Result<Outcome> {
    let target = target(args)?;
    let analysis = read_analysis(&args.trace, args.limits)?;
    if let Some((out, choice)) = target {
        write(args, &analysis, &out, choice)?;
    } else if args.json {
        print_line(&paths_json(&analysis, args.metric))?;
    } else {
        let mut text = Vec::new();
        let written = write_stacks(args, &analysis, &mut text)?;
        if written.lines == 0 {
            warn(args, "has no time to show");
        }
        print(&String::from_utf8(text)?)?;
    }
    Ok(Outcome::Fine)
}

/// Returns where stacks are written to and as what, if not printed.
fn target(args: &StacksArgs) -> anyhow::Result<Option<(Output, Choice<Stacks>)>> {
    let asked = [
        (&args.out, args.to.as_deref()),
        (&args.svg, Some("svg")),
        (&args.speedscope, Some(Format::Speedscope.name())),
    ];
    let asked = asked
        .into_iter()
        .find_map(|(path, to)| Some((path.as_ref()?, to)));
    let Some((path, to)) = asked else {
        return Ok(None);
    };
    let out = Output::of(path);
    let choice = choose(&FORMS, to, &out)?;
    Ok(Some((out, choice)))
}

fn write(
    args: &StacksArgs,
    analysis: &Analysis,
    out: &Output,
    choice: Choice<Stacks>,
) -> anyhow::Result<()> {
    let name = out.name();
    let (what, bytes) = out.write(choice.compression, |file| match choice.form.kind {
        Stacks::Lines => match write_stacks(args, analysis, file)?.lines {
            0 => Err(ReportError::from(Error::NothingSpent)),
            lines => Ok(count(lines, "stack")),
        },
        Stacks::Picture => {
            write_flamegraph(analysis, args.metric, file)?;
            Ok("a flame graph".into())
        }
        Stacks::Speedscope => match analysis.profile().events().len() as u64 {
            0 => Err(Error::NothingSpent.into()),
            events => {
                write_speedscope(analysis, &name, file)?;
                Ok(count(events, "event"))
            }
        },
    })?;
    out.tell_written(bytes, &what);
    Ok(())
}

/// Writes the lines, and says where they are not what was asked for.
fn write_stacks(args: &StacksArgs, analysis: &Analysis, out: impl Write) -> Result<FoldedLines> {
    let has_stacks = !analysis.profile().stacks().is_empty();
    let written = if has_stacks && !args.scopes {
        write_callers(analysis, args.metric, out)?
    } else {
        write_paths(analysis, args.metric, out)?
    };
    if written.lines > 0 && !has_stacks && !args.scopes {
        warn(args, NO_STACKS);
    }
    if written.levels > PATH_LEVELS {
        warn(args, &cut_levels(written.levels));
    }
    Ok(written)
}

fn warn(args: &StacksArgs, what: &str) {
    tell(&format!("warning: {}: {what}", args.trace.display()));
}
