//! `mindprof diff`: compares two traces row by row, and checks the growth against a limit.

use std::path::PathBuf;

use clap::ValueEnum;
use mindprof_answers::{
    Diff, DiffOptions, Doubt, FailOn, Incomplete, Label, Limit, Measure, Verdict,
};
use mindprof_formats::diff_json;
use mindprof_report::{
    DiffLayout, diff_text, doubt_text, refusal_hint, refusal_text, verdict_text,
};

use crate::failure::{Outcome, advised};
use crate::input::ReadLimits;
use crate::output::{print, print_line, tell};
use crate::selected::{Selected, read_compared};
use crate::terminal::terminal_width;
use crate::units::{self, Percent};

const EXAMPLE: &str = "\
Example:
  mindprof diff before.json.gz after.json.gz --fail-over 5%

Exit codes: 0 within the limit, 1 over the limit, 2 not judged, failure or usage
error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct DiffArgs {
    /// Trace to compare against: the baseline.
    #[arg(value_name = "A")]
    before: PathBuf,

    /// Trace to compare: the newer one.
    #[arg(value_name = "B")]
    after: PathBuf,

    /// Compare `self` time, `total` time or `count` of events; rows are sorted by its change.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    measure: MeasureArg,

    /// Match rows by name and input `shape`, if both traces have shapes, by `name` only, or by name
    /// and `line`, `function`, `module` or input `dtype`.
    #[arg(
        long,
        visible_alias = "group-by",
        value_name = "WHAT",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    by: By,

    /// Exit with 1 if B exceeds A by more than PERCENT, such as 5%; CPU time and device time are
    /// checked separately.
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = units::percent,
        allow_hyphen_values = true
    )]
    fail_over: Option<Percent>,

    /// Apply the limit to the `total` or to each `row`; the growth of a row is relative to the
    /// total of A.
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        requires = "fail_over"
    )]
    fail_on: FailOnArg,

    /// Judge incomplete traces too: lost events, damaged files, cuts of `slim`, fewer steps, ranks or
    /// devices in B.
    #[arg(long, requires = "fail_over")]
    allow_incomplete: bool,

    /// Compare Python functions too; always on if neither trace has operators.
    #[arg(long)]
    include_python_functions: bool,

    /// Show at most N rows; -1 shows all that changed.
    #[arg(
        long,
        alias = "limit",
        value_name = "N",
        default_value_t = 100,
        allow_negative_numbers = true
    )]
    row_limit: i64,

    /// Limit the width of the name column; 0 means no limit.
    #[arg(long, value_name = "N", default_value_t = 55)]
    max_name_column_width: usize,

    /// Limit the width of the shapes column; 0 means no limit.
    #[arg(long, value_name = "N", default_value_t = 40)]
    max_shapes_column_width: usize,

    /// Limit the table width; 0 means no limit [default: terminal width]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    #[command(flatten)]
    selected: Selected,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print all rows as JSON, changed or not.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum MeasureArg {
    /// Time without children.
    #[default]
    #[value(name = "self")]
    SelfTime,
    /// Time including children.
    Total,
    /// Number of events.
    Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// Name and input shapes.
    #[default]
    Shape,
    /// Name only.
    Name,
    /// Name and line of the user's own code.
    Line,
    /// Name and function of the user's own code.
    Function,
    /// Name and class of the module.
    Module,
    /// Name and dtypes of the inputs.
    Dtype,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum FailOnArg {
    /// The total of the trace.
    #[default]
    Total,
    /// Each row by itself.
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
            label: match self.by {
                By::Shape | By::Name => None,
                By::Line => Some(Label::Line),
                By::Function => Some(Label::Function),
                By::Module => Some(Label::Module),
                By::Dtype => Some(Label::Dtype),
            },
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

/// Prints the comparison, and applies the limit of `--fail-over` if there is one.
pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<Outcome> {
    let before = read_compared(&args.before, args.limits, &args.selected)?;
    let after = read_compared(&args.after, args.limits, &args.selected)?;
    let diff = Diff::build(&before, &after, args.options());
    if diff.python_functions && !args.include_python_functions {
        tell("no operators in the traces: comparing Python functions");
    }
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
        incomplete: if args.allow_incomplete {
            Incomplete::Accept
        } else {
            Incomplete::Refuse
        },
    };
    let verdict = Verdict::build(&diff, limit);
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
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    // A terminal has shown the notes of the text already.
    if args.json || terminal_width().is_none() {
        for doubt in Doubt::build(&diff, limit) {
            let names = names.each_ref().map(String::as_str);
            tell(&format!("warning: {}", doubt_text(doubt, names)));
        }
    }
    tell(&verdict_text(&verdict, limit));
    Ok(match verdict {
        Verdict::Within { .. } => Outcome::Fine,
        Verdict::Exceeded { .. } | Verdict::Refused(_) => Outcome::Found,
    })
}
