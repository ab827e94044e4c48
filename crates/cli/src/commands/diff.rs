//! `mindprof diff`: what changed between two traces.

use std::path::PathBuf;

use clap::ValueEnum;
use mindprof_analyze::Analysis;
use mindprof_answers::{Condition, Diff, DiffOptions, FailOn, Limit, Measure, Verdict, Work};
use mindprof_formats::diff_json;
use mindprof_report::{DiffLayout, diff_text, refusal_hint, refusal_text, verdict_text};

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
    fail_on: FailOnArg,

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
enum FailOnArg {
    /// The whole.
    #[default]
    Total,
    /// Each row.
    Row,
}

impl From<FailOnArg> for FailOn {
    fn from(argument: FailOnArg) -> Self {
        match argument {
            FailOnArg::Total => Self::Total,
            FailOnArg::Row => Self::Row,
        }
    }
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
    let diff = Diff::build(&before, &after, options);
    if args.json {
        print_line(&diff_json(&diff))?;
    } else {
        print(&diff_text(&diff, &args.layout()))?;
    }
    let Some(asked) = args.fail_over else {
        return Ok(Outcome::Fine);
    };
    let limit = Limit {
        share: asked.part,
        fail_on: args.fail_on.into(),
    };
    let conditions = [&of_before, &of_after].map(|repairs| Condition {
        is_damaged: repairs.are_cuts(),
    });
    let verdict = Verdict::build(&diff, conditions, limit);
    if let Verdict::Refused(refusal) = verdict {
        let trace = if refusal.is_second() {
            &args.after
        } else {
            &args.before
        };
        let message = format!("{}: {}", trace.display(), refusal_text(refusal));
        return Err(advised(message, refusal_hint(refusal)));
    }
    if let Some(warning) = asked.doubt() {
        tell(&warning);
    }
    let Some(exceeded) = verdict_text(&verdict, limit) else {
        return Ok(Outcome::Fine);
    };
    tell(&exceeded);
    Ok(Outcome::Found)
}

/// Returns whether Python functions are all that there is to compare; one side may have nothing.
fn are_python_alone(before: &Analysis, after: &Analysis) -> bool {
    let sides = [before, after];
    let is_alone = |side: &Analysis| Work::of(side).is_python_alone(side.profile());
    let nothing_else = |side: &&Analysis| is_alone(side) || side.profile().events().is_empty();
    sides.iter().all(nothing_else) && sides.into_iter().any(is_alone)
}
