//! `mindprof table`: the events of a trace, summed by name.

use std::path::PathBuf;
use std::str::FromStr;

use mindprof_analyze::{Analysis, GroupBy, averages};
use mindprof_formats::{RowOptions, SortBy, table_json};
use mindprof_report::{TableOptions, TimeUnit, table};

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_known};
use crate::output::{print, print_line, tell};

const EXAMPLE: &str = "\
Example:
  mindprof table trace.json.gz --sort-by self_cpu_time_total --row-limit 10

Exit codes: 0 it worked, 1 the file cannot be read, 2 the arguments make no sense";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct TableArgs {
    /// The trace: Chrome JSON, plain or compressed; - for stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Sorts by one of the columns, largest first: `self_cpu_time_total`, `cpu_time_total`,
    /// `cpu_time`, `self_cuda_time_total`, `cuda_time_total`, `self_cpu_memory_usage`,
    /// `cpu_memory_usage`, `flops`, `count`, `key` [default: in the order in which they first
    /// ran]
    #[arg(long, value_name = "KEY")]
    sort_by: Option<SortBy>,

    /// How many rows to show; -1 shows all [default: 100, and all of them as JSON]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    row_limit: Option<i64>,

    /// Gives rows of their own to each set of input shapes (`shape`), of N innermost stack frames
    /// (`stack:N`, 5 if N is left out). Several with commas. `overload` is taken too, as torch's
    /// tables know it, but no trace says which overload ran.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    group_by: Vec<Grouping>,

    /// As `--group-by shape`.
    #[arg(long)]
    group_by_input_shape: bool,

    /// As `--group-by stack:N`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    group_by_stack_n: usize,

    /// Gives calls of Python functions rows too.
    #[arg(long)]
    include_python_functions: bool,

    /// Leaves out rows whose first event ran inside another.
    #[arg(long, alias = "top-level-events-only")]
    top_level_only: bool,

    /// Shows all times in one unit: s, ms or us [default: what fits each]
    #[arg(long, value_name = "UNIT")]
    time_unit: Option<TimeUnit>,

    /// How wide the column of names gets; 0 sets no limit.
    #[arg(long, value_name = "N", default_value_t = 55)]
    max_name_column_width: usize,

    /// How wide the column of input shapes gets; 0 sets no limit.
    #[arg(long, value_name = "N", default_value_t = 80)]
    max_shapes_column_width: usize,

    /// How wide the column of source locations gets; 0 sets no limit.
    #[arg(long, value_name = "N", default_value_t = 75)]
    max_src_column_width: usize,

    /// Shows how the times of each row are spread: p50, p90, p99 and the longest.
    #[arg(long)]
    percentiles: bool,

    /// A text above the table.
    #[arg(long, value_name = "TEXT")]
    header: Option<String>,

    #[command(flatten)]
    limits: ReadLimits,

    /// Prints JSON: the rows, under torch's names.
    #[arg(long)]
    json: bool,
}

/// What rows of one name are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grouping {
    Shape,
    Stack(usize),
    Overload,
}

impl FromStr for Grouping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected shape, stack, stack:N or overload".to_owned();
        match text {
            "shape" => Ok(Self::Shape),
            "stack" => Ok(Self::Stack(5)),
            "overload" => Ok(Self::Overload),
            _ => {
                let number = text.strip_prefix("stack:").ok_or_else(wrong)?;
                let frames = number.parse().ok().filter(|&frames| frames > 0);
                frames.map(Self::Stack).ok_or_else(wrong)
            }
        }
    }
}

impl TableArgs {
    /// Returns which events make up a row.
    fn group_by(&self) -> GroupBy {
        let mut frames = self.group_by.iter().filter_map(|grouping| match grouping {
            Grouping::Stack(frames) => Some(*frames),
            Grouping::Shape | Grouping::Overload => None,
        });
        GroupBy {
            input_shapes: self.group_by_input_shape || self.group_by.contains(&Grouping::Shape),
            stack_frames: frames.next_back().unwrap_or(self.group_by_stack_n),
            python_functions: self.include_python_functions,
        }
    }

    /// Returns how the table is laid out.
    fn table_options(&self) -> TableOptions {
        let limit = |width: usize| (width > 0).then_some(width);
        let row_limit = self.row_limit.unwrap_or(if self.json { -1 } else { 100 });
        TableOptions {
            rows: RowOptions {
                sort_by: self.sort_by,
                row_limit: usize::try_from(row_limit).ok(),
                top_level_events_only: self.top_level_only,
                percentiles: self.percentiles,
            },
            max_src_column_width: limit(self.max_src_column_width),
            max_name_column_width: limit(self.max_name_column_width),
            max_shapes_column_width: limit(self.max_shapes_column_width),
            header: self.header.clone(),
            time_unit: self.time_unit,
        }
    }
}

/// Prints the table of a trace.
pub(crate) fn run(args: &TableArgs) -> anyhow::Result<Outcome> {
    let analysis = Analysis::build(read_known(&args.trace, args.limits)?.profile);
    if args.group_by.contains(&Grouping::Overload) {
        let trace = args.trace.display();
        tell(&format!(
            "warning: {trace}: no trace says which overload ran, so rows are not told apart by it"
        ));
    }
    let group_by = args.group_by();
    let averages = averages(&analysis, group_by);
    let options = args.table_options();
    if args.row_limit.is_none() {
        tell_of_more(&options.rows, averages.rows.len());
    }
    if args.json {
        print_line(&table_json(&analysis, &averages, group_by, &options.rows))?;
    } else {
        print(&table(&analysis, &averages, group_by, &options))?;
    }
    Ok(Outcome::Fine)
}

/// Says on stderr that rows are not shown, so that nobody takes a part for the whole.
fn tell_of_more(options: &RowOptions, rows: usize) {
    let more = rows.saturating_sub(options.row_limit.unwrap_or(usize::MAX));
    if more > 0 {
        tell(&format!(
            "{more} more rows are not shown; --row-limit -1 shows all"
        ));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn parsed(arguments: &[&str]) -> TableArgs {
        let program = ["mindprof", "table", "t"].iter().chain(arguments);
        match Args::parse_from(program).command {
            Command::Table(args) => args,
            other => panic!("expected the arguments of table, found {other:?}"),
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let args = parsed(&[]);
        let options = args.table_options();
        let default = TableOptions::default();
        assert_eq!(options.rows.row_limit, default.rows.row_limit);
        assert_eq!(options.max_name_column_width, default.max_name_column_width);
        assert_eq!(
            options.max_shapes_column_width,
            default.max_shapes_column_width
        );
        assert_eq!(options.max_src_column_width, default.max_src_column_width);
        assert_eq!(options.rows.percentiles, default.rows.percentiles);
        assert_eq!(options.rows.sort_by, default.rows.sort_by);
        assert_eq!(args.group_by(), GroupBy::default());
    }

    #[test]
    fn groupings_can_be_said_in_two_ways() {
        let long = parsed(&["--group-by-input-shape", "--group-by-stack-n", "3"]);
        let short = parsed(&["--group-by", "shape,stack:3,overload"]);
        assert_eq!(short.group_by(), long.group_by());
        assert_eq!(parsed(&["--group-by", "stack"]).group_by().stack_frames, 5);
        for wrong in ["stacks", "stack:0", "stack:x", ""] {
            assert!(wrong.parse::<Grouping>().is_err());
        }
    }
}
