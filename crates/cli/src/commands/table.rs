//! `mindprof table`: the events of a trace, summed by name.

use std::path::PathBuf;
use std::str::FromStr;

use mindprof_analyze::{Analysis, Averages, GroupBy, Metric};
use mindprof_answers::Work;
use mindprof_formats::{RowOptions, SortBy, average_rows, table_json};
use mindprof_report::{TABLE_COLUMNS, TableFacts, TableOptions, TimeUnit, table_of_rows};

use crate::failure::Outcome;
use crate::input::{ReadLimits, read_analysis};
use crate::known::KnownValues;
use crate::left_out::tell_left_out;
use crate::output::{print, print_line, tell};
use crate::terminal::terminal_width;

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

    /// Sorts by one of the columns, largest first; `none` keeps the order in which they first ran
    /// [default: where the time went, `self_device_time_total` if devices worked, else
    /// `self_cpu_time_total`; ranges as devices saw them come last]
    #[arg(long, value_name = "KEY", value_parser = sort_keys())]
    sort_by: Option<Order>,

    /// The columns to show, in this order, with commas between them [default: all that there are
    /// numbers for, and in a terminal those that fit]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', value_parser = column_keys())]
    columns: Vec<&'static str>,

    /// How wide the table gets; 0 sets no limit [default: the terminal's width; no limit elsewhere]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    /// How many rows to show; -1 shows all [default: 100, and all of them as JSON]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    row_limit: Option<i64>,

    /// Gives rows of their own to each set of input shapes (`shape`), of N innermost stack frames
    /// (`stack:N`, 5 if N is left out). Several with commas. `overload` is taken too, as torch's
    /// tables know it, but no trace says which overload ran.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = groupings())]
    group_by: Vec<Grouping>,

    /// As `--group-by shape`.
    #[arg(long)]
    group_by_input_shape: bool,

    /// As `--group-by stack:N`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    group_by_stack_n: usize,

    /// Gives calls of Python functions rows too; without operators in the trace they have them
    /// anyway.
    #[arg(long)]
    include_python_functions: bool,

    /// Shows a trace of `mindprof run` as any other: imports and steps have rows too, and no row has
    /// the time of Python's calls in it as its own.
    #[arg(long)]
    all_ranges: bool,

    /// Leaves out rows whose first event ran inside another.
    #[arg(long, alias = "top-level-events-only")]
    top_level_only: bool,

    /// Shows all times in one unit [default: what fits each]
    #[arg(long, value_name = "UNIT", value_parser = time_units())]
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

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// By when they first ran.
    FirstRun,
    By(SortBy),
}

const FIRST_RUN: &str = "none";

fn sort_keys() -> KnownValues<Order> {
    let names = SortBy::all().map(SortBy::name).chain([FIRST_RUN]);
    KnownValues::new(names, |name| match name {
        FIRST_RUN => Ok(Order::FirstRun),
        name => SortBy::from_str(name)
            .map(Order::By)
            .map_err(|error| error.to_string()),
    })
}

fn column_keys() -> KnownValues<&'static str> {
    KnownValues::new(TABLE_COLUMNS, |name| {
        // As sort keys, those of one kind of device stand for devices of any kind.
        let own = name.replace("cuda", "device").replace("xpu", "device");
        let mut known = TABLE_COLUMNS.into_iter();
        let found = known.find(|known| *known == own);
        found.ok_or_else(|| format!("expected one of {}", TABLE_COLUMNS.join(", ")))
    })
}

fn time_units() -> KnownValues<TimeUnit> {
    KnownValues::new(["s", "ms", "us"], |name| {
        TimeUnit::from_str(name).map_err(|error| error.to_string())
    })
}

fn groupings() -> KnownValues<Grouping> {
    KnownValues::new(["shape", "stack", "overload"], Grouping::from_str)
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

    /// Returns what rows are sorted by: without a word, where the time went.
    fn sort_by(&self, analysis: &Analysis) -> Option<SortBy> {
        match self.sort_by {
            Some(Order::FirstRun) => None,
            Some(Order::By(key)) => Some(key),
            None if analysis.accelerator().is_some() => {
                Some(SortBy::Metric(Metric::SelfDeviceTimeTotal))
            }
            None => Some(SortBy::Metric(Metric::SelfCpuTimeTotal)),
        }
    }

    /// Returns how wide the table may get.
    fn max_width(&self) -> Option<usize> {
        let asked = self.width.or_else(terminal_width);
        asked.filter(|&width| width > 0)
    }

    /// Returns how the table is laid out.
    fn table_options(&self, sort_by: Option<SortBy>) -> TableOptions {
        let limit = |width: usize| (width > 0).then_some(width);
        let row_limit = self.row_limit.unwrap_or(if self.json { -1 } else { 100 });
        TableOptions {
            rows: RowOptions {
                sort_by,
                row_limit: usize::try_from(row_limit).ok(),
                top_level_events_only: self.top_level_only,
                percentiles: self.percentiles || self.asks_for_percentiles(),
                device_ranges_last: self.sort_by.is_none(),
            },
            max_src_column_width: limit(self.max_src_column_width),
            max_name_column_width: limit(self.max_name_column_width),
            max_shapes_column_width: limit(self.max_shapes_column_width),
            header: self.header.clone(),
            time_unit: self.time_unit,
            columns: (!self.columns.is_empty()).then(|| self.columns.clone()),
            max_width: self.max_width(),
        }
    }

    fn asks_for_percentiles(&self) -> bool {
        let spread = ["p50", "p90", "p99", "max"];
        self.columns.iter().any(|column| spread.contains(column))
    }
}

/// Prints the table of a trace.
pub(crate) fn run(args: &TableArgs) -> anyhow::Result<Outcome> {
    let mut analysis = read_analysis(&args.trace, args.limits)?;
    if args.group_by.contains(&Grouping::Overload) {
        let trace = args.trace.display();
        tell(&format!(
            "warning: {trace}: no trace says which overload ran, so rows are not told apart by it"
        ));
    }
    let work = if args.all_ranges {
        Work::all()
    } else {
        Work::of(&analysis)
    };
    let mut group_by = args.group_by();
    if !group_by.python_functions && work.is_python_alone(analysis.profile()) {
        group_by.python_functions = true;
        let trace = args.trace.display();
        tell(&format!(
            "{trace}: has no operators, so Python functions are shown"
        ));
    }
    if let Some(view) = work.view(&analysis, group_by) {
        analysis = view;
    }
    let found = work.averages(&analysis, group_by);
    tell_left_out(&args.trace, &found.left_out);
    let options = args.table_options(args.sort_by(&analysis));
    let rows = options.rows.rows(&analysis, &found.averages, group_by);
    let left_out = Averages {
        rows: found.left_out.rows().cloned().collect(),
        ..Averages::default()
    };
    let left_out = average_rows(&analysis, &left_out, group_by);
    if args.row_limit.is_none() {
        tell_of_more(&options.rows, rows.len());
    }
    if args.json {
        let loss = analysis.profile().loss();
        print_line(&table_json(&rows, &left_out, loss, &options.rows))?;
    } else {
        print(&table_of_rows(&rows, &TableFacts::of(&analysis), &options)?)?;
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
        // The tests may run in a terminal.
        let args = parsed(&["--width", "0"]);
        let options = args.table_options(None);
        let default = TableOptions::default();
        assert_eq!(options.rows.row_limit, default.rows.row_limit);
        assert_eq!(options.max_name_column_width, default.max_name_column_width);
        assert_eq!(
            options.max_shapes_column_width,
            default.max_shapes_column_width
        );
        assert_eq!(options.max_src_column_width, default.max_src_column_width);
        assert_eq!(options.rows.percentiles, default.rows.percentiles);
        assert_eq!((options.columns, options.max_width), (None, None));
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
