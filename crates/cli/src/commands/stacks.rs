//! `mindprof stacks`: prints or writes time by call stack, as folded lines, a flame graph or a
//! speedscope file.

use std::io::Write;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use mindprof_analyze::{Analysis, Folded, PATH_LEVELS, StackMetric};
use mindprof_answers::{CallersOf, Pictures, Work, folded_callers};
use mindprof_formats::{
    Error, FoldedLines, Format, NO_STACKS, Result, STACK_METRICS, cut_levels, paths_json,
    stack_metric, write_folded_paths, write_speedscope,
};
use mindprof_model::Nanos;
use mindprof_report::{Error as ReportError, FlameGraph, draw_flamegraph};

use crate::failure::Outcome;
use crate::form::{Choice, Form, choose, listed, values};
use crate::input::ReadLimits;
use crate::known::KnownValues;
use crate::output::{Output, print, print_line, tell};
use crate::selected::{Selected, read_selected};
use mindprof_formats::counted;

fn example() -> String {
    let formats = listed(&FORMS);
    format!(
        "\
Example:
  mindprof stacks trace.json.gz --out flames.svg

{formats}

Exit codes: 0 success, 1 failure, 2 usage error"
    )
}

/// The output formats of stacks.
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
        description: "flame graph",
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
#[command(after_help = example())]
pub(crate) struct StacksArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Weigh stacks by `self_cpu_time_total`, or by `self_cuda_time_total` for any device.
    #[arg(
        long,
        value_name = "METRIC",
        default_value = "self_cpu_time_total",
        hide_possible_values = true,
        value_parser = metrics()
    )]
    metric: StackMetric,

    /// Append nested scopes, such as operators, to the callers; always on for a trace without
    /// stacks.
    #[arg(long)]
    scopes: bool,

    /// Show the imports of a run instead of its work.
    #[arg(long)]
    imports: bool,

    /// Write to FILE instead of stdout; `-` writes to stdout.
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    out: Option<PathBuf>,

    /// Write FORMAT to the file [default: by the extension of FILE]
    #[arg(long, value_name = "FORMAT", requires = "out", hide_possible_values = true, value_parser = PossibleValuesParser::new(values(&FORMS)))]
    to: Option<String>,

    #[command(flatten)]
    selected: Selected,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print stacks, including scopes, as JSON.
    #[arg(long)]
    json: bool,
}

fn metrics() -> KnownValues<StackMetric> {
    KnownValues::new(STACK_METRICS, |name| {
        stack_metric(name).map_err(|error| error.to_string())
    })
}

/// Prints the stacks, or writes them to the file of `--out`.
pub(crate) fn run(args: &StacksArgs) -> anyhow::Result<Outcome> {
    let target = target(args)?;
    let analysis = read_selected(&args.trace, args.limits, &args.selected)?;
    if let Some((out, choice)) = target {
        write(args, &analysis, &out, choice)?;
    } else if args.json {
        print_line(&paths_json(&analysis, args.metric))?;
    } else {
        let mut text = Vec::new();
        let written = write_stacks(args, &analysis, &mut text)?;
        if written.lines == 0 {
            warn(args, "no self time to show");
        }
        print(&String::from_utf8(text)?)?;
    }
    Ok(Outcome::Fine)
}

/// Returns the output of `--out` and its format; `None` if the option is not given.
fn target(args: &StacksArgs) -> anyhow::Result<Option<(Output, Choice<Stacks>)>> {
    let Some(path) = &args.out else {
        return Ok(None);
    };
    let out = Output::of(path);
    let choice = choose(&FORMS, args.to.as_deref(), &out)?;
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
            lines => Ok(counted(lines, "stack")),
        },
        Stacks::Picture => {
            let folded = Folded::build(analysis, args.metric);
            let (folded, waited) = pictured(args, analysis, &folded);
            let picture = FlameGraph {
                metric: args.metric,
                waited,
            };
            draw_flamegraph(&folded, analysis.profile(), picture, file)?;
            Ok("a flame graph".into())
        }
        Stacks::Speedscope => match analysis.profile().events().len() as u64 {
            0 => Err(Error::NothingSpent.into()),
            events => {
                write_speedscope(analysis, &name, file)?;
                Ok(counted(events, "event"))
            }
        },
    })?;
    out.tell_written(bytes, &what);
    Ok(())
}

/// Writes folded lines, and warns if scopes replace missing stacks or deep stacks were cut.
fn write_stacks(args: &StacksArgs, analysis: &Analysis, out: impl Write) -> Result<FoldedLines> {
    let has_stacks = !analysis.profile().stacks().is_empty();
    let written = if has_stacks && !args.scopes {
        let work = Work::of(analysis);
        let wanted = if args.imports {
            CallersOf::Imports
        } else {
            CallersOf::Work
        };
        let folded = folded_callers(analysis, &work, args.metric, wanted);
        let pictures = Pictures::new(&folded, &work);
        // Frames of the interpreter tell imports too, if there are any.
        let has_frames = pictures.imports.total() >= pictures.work.total();
        if args.imports && (work.side_ranges().is_none() || has_frames) {
            write_folded_paths(&pictures.imports, out)?
        } else {
            write_folded_paths(&pictures.work, out)?
        }
    } else {
        let folded = Folded::build(analysis, args.metric);
        write_folded_paths(&pictured(args, analysis, &folded).0, out)?
    };
    if written.lines > 0 && !has_stacks && !args.scopes {
        warn(args, NO_STACKS);
    }
    if written.levels > PATH_LEVELS {
        warn(args, &cut_levels(written.levels));
    }
    Ok(written)
}

/// Returns the paths of a run's work, or of its imports if these are asked for, and the time of
/// waiting threads that is left out.
fn pictured<'a>(
    args: &StacksArgs,
    analysis: &Analysis,
    folded: &Folded<'a>,
) -> (Folded<'a>, Nanos) {
    let pictures = Pictures::new(folded, &Work::of(analysis));
    if args.imports {
        (pictures.imports, Nanos::ZERO)
    } else {
        (pictures.work, pictures.waited)
    }
}

fn warn(args: &StacksArgs, what: &str) {
    tell(&format!("warning: {}: {what}", args.trace.display()));
}
