//! `mindprof diff`: what changed between two traces.

use std::path::PathBuf;

use clap::ValueEnum;
use mindprof_analyze::{Diff, DiffOptions, Measure};
use mindprof_formats::diff_json;
use mindprof_report::{DiffLayout, diff_text, visible};

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_analysis};
use crate::output::{print, print_line, tell};
use crate::terminal::terminal_width;
use crate::units;

const EXAMPLE: &str = "\
Example:
  mindprof diff before.json.gz after.json.gz --fail-over 5%

Exit codes: 0 nothing grew over the limit, 1 something did, 2 a file cannot be read or the arguments make no sense";

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

    /// Exits with 1 if B has this much more than A: `5%` of A's time (host and devices each by
    /// themselves) or count.
    #[arg(long, value_name = "PERCENT", value_parser = units::percent)]
    fail_over: Option<f64>,

    /// What the limit is for: the whole, or each row, whose growth is told in parts of the whole
    /// of A.
    #[arg(long, value_enum, default_value_t, requires = "fail_over")]
    fail_on: FailOn,

    /// Compares calls of Python functions too.
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
        }
    }
}

/// Prints what changed, and says by the exit code if it is too much.
pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<Outcome> {
    let before = read_analysis(&args.before, args.limits)?;
    let after = read_analysis(&args.after, args.limits)?;
    let diff = Diff::build(&before, &after, args.options());
    if args.json {
        print_line(&diff_json(&diff))?;
    } else {
        let width = args.width.or_else(terminal_width);
        print(&fitting_text(
            &diff,
            args.layout(),
            width.filter(|&width| width > 0),
        ))?;
    }
    let Some(limit) = args.fail_over else {
        return Ok(Outcome::Fine);
    };
    let (what, growth) = grown(&diff, args.fail_on);
    if growth <= limit {
        return Ok(Outcome::Fine);
    }
    let limit = limit * 100.0;
    let growth = if growth.is_finite() {
        format!("by {:.1}%", growth * 100.0)
    } else {
        "from nothing".into()
    };
    tell(&format!("{what} grew {growth}, more than {limit}%"));
    Ok(Outcome::Found)
}

/// How wide shapes and names get, from wide to narrow.
const WIDTHS: [(usize, usize); 6] = [(40, 55), (24, 55), (24, 40), (16, 32), (12, 24), (8, 16)];

/// Returns the text with names and shapes as wide as there is room for.
fn fitting_text(diff: &Diff, layout: DiffLayout, width: Option<usize>) -> String {
    let mut text = diff_text(diff, &layout);
    let Some(width) = width else {
        return text;
    };
    for (shapes, names) in WIDTHS {
        if text.lines().all(|line| line.chars().count() <= width) {
            break;
        }
        let least =
            |own: Option<usize>, limit: usize| Some(own.map_or(limit, |own| own.min(limit)));
        let narrow = DiffLayout {
            max_shapes_column_width: least(layout.max_shapes_column_width, shapes),
            max_name_column_width: least(layout.max_name_column_width, names),
            ..layout
        };
        text = diff_text(diff, &narrow);
    }
    text
}

/// Returns what grew most of what a limit is for, and by which part.
fn grown(diff: &Diff, fail_on: FailOn) -> (String, f64) {
    match (fail_on, diff.worst()) {
        (FailOn::Row, Some(row)) => (visible(&row.key).into_owned(), diff.row_growth(row)),
        (FailOn::Row, None) => (String::new(), 0.0),
        (FailOn::Total, _) => ("the whole".into(), diff.growth()),
    }
}
