//! `mindprof diff`: what changed between two traces.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mindprof_analyze::{Analysis, Diff, DiffOptions, Measure, Side, is_python_alone};
use mindprof_formats::{RunRanges, diff_json};
use mindprof_model::{Nanos, Profile};
use mindprof_report::{DiffLayout, diff_text, visible};
use mindprof_trace::{Repair, Repairs};

use crate::failure::{Outcome, advised};
use crate::input::{ReadLimits, read_repaired};
use crate::output::{print, print_line, tell};
use crate::terminal::terminal_width;
use crate::units::{self, Percent};

const EXAMPLE: &str = "\
Example:
  mindprof diff before.json.gz after.json.gz --fail-over 5%

Exit codes: 0 nothing grew over the limit, 1 something did, 2 a file cannot be read or held against a limit, or the arguments make no sense";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct DiffArgs {
    /// The trace to compare with.
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The trace that is compared.
    #[arg(value_name = "B")]
    after: PathBuf,

    /// What rows are sorted by and limits are about: the largest change stands first.
    #[arg(long, value_enum, default_value_t)]
    measure: MeasureArg,

    /// What rows are matched by. Shapes are used where both traces have them.
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// Exits with 1 if B has this much more than A, in percent: `5%`, or `5`, of A's time (host and
    /// devices each by themselves) or count.
    #[arg(long, value_name = "PERCENT", value_parser = units::percent)]
    fail_over: Option<Percent>,

    /// What the limit is for: the whole, or each row, whose growth is told in parts of the whole
    /// of A.
    #[arg(long, value_enum, default_value_t, requires = "fail_over")]
    fail_on: FailOn,

    /// Compares calls of Python functions too; where neither trace has operators they are anyway.
    #[arg(long)]
    include_python_functions: bool,

    /// How many rows to show; -1 shows all that changed.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        allow_negative_numbers = true
    )]
    row_limit: i64,

    /// How wide the column of names gets; 0 sets no limit.
    #[arg(long, value_name = "N", default_value_t = 55)]
    max_name_column_width: usize,

    /// How wide the column of input shapes gets; 0 sets no limit.
    #[arg(long, value_name = "N", default_value_t = 40)]
    max_shapes_column_width: usize,

    /// How wide the text gets; 0 sets no limit [default: the terminal's width; no limit elsewhere]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Prints JSON: all rows, changed or not.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum MeasureArg {
    /// The time without the children.
    #[default]
    #[value(name = "self")]
    SelfTime,
    /// The time, children included.
    Total,
    /// The number of events.
    Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// Name and input shapes.
    #[default]
    Shape,
    /// Name alone.
    Name,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum FailOn {
    /// The whole.
    #[default]
    Total,
    /// Each row.
    Row,
}

impl DiffArgs {
    fn options(&self) -> DiffOptions {
        DiffOptions {
            input_shapes: self.by == By::Shape,
            python_functions: self.include_python_functions,
            measure: match self.measure {
                MeasureArg::SelfTime => Measure::SelfTime,
                MeasureArg::Total => Measure::TotalTime,
                MeasureArg::Count => Measure::Count,
            },
        }
    }

    fn layout(&self) -> DiffLayout {
        let limit = |width: usize| (width > 0).then_some(width);
        DiffLayout {
            row_limit: usize::try_from(self.row_limit).ok(),
            max_name_column_width: limit(self.max_name_column_width),
            max_shapes_column_width: limit(self.max_shapes_column_width),
            max_width: self
                .width
                .or_else(terminal_width)
                .filter(|&width| width > 0),
        }
    }
}

/// Prints what changed, and says by the exit code if it is too much.
pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<Outcome> {
    let (before, of_before) = read_repaired(&args.before, args.limits)?;
    let (after, of_after) = read_repaired(&args.after, args.limits)?;
    let mut options = args.options();
    if !options.python_functions && are_python_alone(&before, &after) {
        options.python_functions = true;
        tell("the traces have no operators, so Python functions are compared");
    }
    if [&before, &after].into_iter().any(has_imports) {
        tell(
            "imports are compared too, which tables of `mindprof run` leave out; with --wait 1 \
             --active N it records optimizer steps alone",
        );
    }
    let diff = Diff::build(&before, &after, options);
    if args.json {
        print_line(&diff_json(&diff))?;
    } else {
        print(&diff_text(&diff, &args.layout()))?;
    }
    let Some(limit) = args.fail_over else {
        return Ok(Outcome::Fine);
    };
    refuse_parts(&args.before, &of_before)?;
    refuse_parts(&args.after, &of_after)?;
    refuse_nothing(&args.before, &before, diff.before.count)?;
    refuse_nothing(&args.after, &after, diff.after.count)?;
    refuse_lost_devices(&args.after, &diff)?;
    if let Some(warning) = limit.doubt() {
        tell(&warning);
    }
    Ok(judge(&diff, args.fail_on, limit))
}

/// Returns whether Python functions are all that there is to compare; one side may have nothing.
fn are_python_alone(before: &Analysis, after: &Analysis) -> bool {
    let sides = [before, after].map(Analysis::profile);
    let nothing_else = |profile: &&Profile| is_python_alone(profile) || profile.events().is_empty();
    sides.iter().all(nothing_else) && sides.into_iter().any(is_python_alone)
}

/// Returns whether a trace is of a run that has imported something.
fn has_imports(analysis: &Analysis) -> bool {
    RunRanges::read(analysis.profile()).is_some_and(|ranges| !ranges.imports.is_empty())
}

/// Refuses to hold a trace against a limit that is not all there: what is missing cannot grow.
fn refuse_parts(trace: &Path, repairs: &Repairs) -> anyhow::Result<()> {
    let cuts = [
        Repair::Truncated,
        Repair::DamagedCompression,
        Repair::Malformed,
    ];
    if cuts.iter().all(|&cut| repairs.count(cut) == 0) {
        return Ok(());
    }
    let trace = trace.display();
    let message = format!("{trace}: is damaged or cut off, and cannot be held against a limit");
    Err(advised(
        message,
        "record or copy it anew, or leave --fail-over away",
    ))
}

/// Refuses a trace without events: a run that recorded nothing did not get faster.
fn refuse_nothing(trace: &Path, analysis: &Analysis, count: u64) -> anyhow::Result<()> {
    if count > 0 {
        return Ok(());
    }
    let what = if analysis.profile().events().is_empty() {
        "has no events"
    } else {
        "has no operators, ranges or work of devices"
    };
    let message = format!(
        "{}: {what}, and cannot be held against a limit",
        trace.display()
    );
    Err(advised(
        message,
        "look with `mindprof info` at what was recorded",
    ))
}

/// Refuses a second trace in which no device worked, though in the first one some did.
fn refuse_lost_devices(trace: &Path, diff: &Diff) -> anyhow::Result<()> {
    if diff.before.device == Nanos::ZERO || diff.after.device != Nanos::ZERO {
        return Ok(());
    }
    let message = format!(
        "{}: has no work of devices, which the first trace has, and cannot be held against a limit",
        trace.display()
    );
    Err(advised(
        message,
        "look with `mindprof info` at what was recorded",
    ))
}

/// Says whether something grew over the limit.
fn judge(diff: &Diff, fail_on: FailOn, limit: Percent) -> Outcome {
    let (what, growth) = grown(diff, fail_on);
    if growth <= limit.part {
        return Outcome::Fine;
    }
    let growth = if growth.is_finite() {
        let of_what = match fail_on {
            FailOn::Row => " of the whole",
            FailOn::Total => "",
        };
        format!("by {:.1}%{of_what}", growth * 100.0)
    } else {
        "from nothing".into()
    };
    tell(&format!("{what} grew {growth}, more than {limit}"));
    Outcome::Found
}

/// Returns what grew most of what a limit is for, and by which part.
fn grown(diff: &Diff, fail_on: FailOn) -> (String, f64) {
    match (fail_on, diff.worst()) {
        (FailOn::Row, Some(row)) => (visible(&row.key).into_owned(), diff.row_growth(row)),
        (FailOn::Row, None) => (String::new(), 0.0),
        (FailOn::Total, _) => {
            let (side, growth) = diff.most_grown();
            let what = match side {
                Side::Host => "the time on the host",
                Side::Devices => "the time on devices",
                Side::Events => "the number of events",
            };
            (what.into(), growth)
        }
    }
}
