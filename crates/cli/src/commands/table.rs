//! `mindprof table`: prints the events of a trace, summed by name.

use std::path::PathBuf;
use std::str::FromStr;

use mindprof_analyze::{Analysis, Averages, GroupBy, Metric};
use mindprof_answers::{Label, OwnCode, Sampling, Work};
use mindprof_formats::{RowOptions, SortBy, average_rows, table_json};
use mindprof_report::{
    TABLE_COLUMNS, TableFacts, TableOptions, TimeUnit, label_header, table_of_rows,
};

use crate::failure::{Outcome, misused};
use crate::input::ReadLimits;
use crate::known::{KnownValues, columns_of};
use crate::left_out::tell_left_out;
use crate::output::{print, print_line, tell};
use crate::selected::{Selected, read_selected};
use crate::terminal::terminal_width;

fn example() -> String {
    let keys: Vec<&str> = sort_names().collect();
    let (keys, columns) = (columns_of(&keys), columns_of(&TABLE_COLUMNS));
    format!(
        "\
Example:
  mindprof table trace.json.gz --sort-by self_cpu_time_total --row-limit 10

Keys of --sort-by:
{keys}torch's older names, such as self_cuda_time_total, work too.

Columns of --columns:
{columns}
Exit codes: 0 success, 1 failure, 2 usage error"
    )
}

#[derive(Debug, clap::Args)]
#[command(after_help = example())]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent flag of the command line"
)]
pub(crate) struct TableArgs {
    /// Trace file; `-` reads stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Sort rows by KEY, largest first; `none` keeps the order of first execution [default:
    /// `self_device_time_total` if a device was used, else `self_cpu_time_total`]
    #[arg(long, alias = "sort", value_name = "KEY", hide_possible_values = true, value_parser = sort_keys())]
    sort_by: Option<Order>,

    /// Show these columns, in this order, separated by commas [default: all with data; in a
    /// terminal those that fit]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', hide_possible_values = true, value_parser = column_keys())]
    columns: Vec<&'static str>,

    /// Limit the table width; 0 means no limit [default: terminal width]
    #[arg(long, value_name = "N")]
    width: Option<usize>,

    /// Show at most N rows; -1 shows all [default: 100; all with --json]
    #[arg(long, alias = "limit", value_name = "N", allow_negative_numbers = true)]
    row_limit: Option<i64>,

    /// Split rows by input `shape` or `dtype`, by `module`, by `line` or `function` of your code, or
    /// by N innermost frames, `stack:N` [default N: 5]; commas combine
    #[arg(long, value_name = "WHAT", value_delimiter = ',', hide_possible_values = true, value_parser = groupings())]
    group_by: Vec<Grouping>,

    /// Show Python functions too; always on if the trace has no operators.
    #[arg(long)]
    include_python_functions: bool,

    /// Treat a trace of `mindprof run` like any other: show import and step rows, and exclude
    /// Python calls from the self time of ranges.
    #[arg(long)]
    all_ranges: bool,

    /// Omit rows whose first event ran inside another event.
    #[arg(long)]
    top_level_only: bool,

    /// Show all times in UNIT: s, ms or us [default: the best unit for each]
    #[arg(long, value_name = "UNIT", hide_possible_values = true, value_parser = time_units())]
    time_unit: Option<TimeUnit>,

    /// Limit the width of the name column; 0 means no limit.
    #[arg(long, value_name = "N", default_value_t = 55)]
    max_name_column_width: usize,

    /// Limit the width of the shapes column; 0 means no limit.
    #[arg(long, value_name = "N", default_value_t = 80)]
    max_shapes_column_width: usize,

    /// Limit the width of the source column; 0 means no limit.
    #[arg(long, value_name = "N", default_value_t = 75)]
    max_src_column_width: usize,

    /// Show p50, p90, p99 and the maximum of the times of each row.
    #[arg(long)]
    percentiles: bool,

    /// Print TEXT above the table.
    #[arg(long, value_name = "TEXT")]
    header: Option<String>,

    #[command(flatten)]
    selected: Selected,

    #[command(flatten)]
    limits: ReadLimits,

    /// Print the rows as JSON, under torch's names.
    #[arg(long)]
    json: bool,
}

/// The order of rows, as given by `--sort-by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The order of first execution.
    FirstRun,
    By(SortBy),
}

const FIRST_RUN: &str = "none";

fn sort_names() -> impl Iterator<Item = &'static str> {
    SortBy::all().map(SortBy::name).chain([FIRST_RUN])
}

fn sort_keys() -> KnownValues<Order> {
    KnownValues::new(sort_names(), |name| match name {
        FIRST_RUN => Ok(Order::FirstRun),
        name => SortBy::from_str(name)
            .map(Order::By)
            .map_err(|error| error.to_string()),
    })
}

fn column_keys() -> KnownValues<&'static str> {
    KnownValues::new(TABLE_COLUMNS, |name| {
        // torch's names for one kind of device select the columns of any device, as in sort keys.
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
    let labels = Label::ALL.map(Label::name);
    KnownValues::new(
        ["shape", "stack", "overload"].into_iter().chain(labels),
        Grouping::from_str,
    )
}

/// A property that splits rows of one name, as given by `--group-by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grouping {
    Shape,
    /// This number of innermost stack frames.
    Stack(usize),
    /// One of the labels that the analysis finds.
    Label(Label),
    /// Accepted because torch's tables have it, but traces do not record overloads.
    Overload,
}

impl FromStr for Grouping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "expected shape, stack, stack:N, line, function, module, dtype or overload".to_owned()
        };
        let label = Label::ALL.into_iter().find(|label| label.name() == text);
        if let Some(label) = label {
            return Ok(Self::Label(label));
        }
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
    /// Returns the grouping of events into rows.
    fn group_by(&self) -> GroupBy {
        let mut frames = self.group_by.iter().filter_map(|grouping| match grouping {
            Grouping::Stack(frames) => Some(*frames),
            Grouping::Label(_) => Some(1),
            Grouping::Shape | Grouping::Overload => None,
        });
        GroupBy {
            input_shapes: self.group_by.contains(&Grouping::Shape),
            stack_frames: frames.next_back().unwrap_or(0),
            python_functions: self.include_python_functions,
        }
    }

    /// Returns the label that splits rows, if there is one.
    ///
    /// # Errors
    /// If there is more than one, or stacks split the rows too: a row has one place for them.
    fn label(&self) -> anyhow::Result<Option<Label>> {
        let mut places = self.group_by.iter().filter(|grouping| match grouping {
            Grouping::Label(_) | Grouping::Stack(_) => true,
            Grouping::Shape | Grouping::Overload => false,
        });
        match (places.next(), places.next()) {
            (Some(Grouping::Label(label)), None) => Ok(Some(*label)),
            (_, None) => Ok(None),
            (_, Some(_)) => Err(misused(
                "--group-by takes one of stack, line, function, module and dtype",
                "choose one of them; it combines with shape",
            )),
        }
    }

    /// Returns the sort key: by default self time, of devices if the trace has any.
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

    /// Returns the largest width of the table; `None` if it is unlimited.
    fn max_width(&self) -> Option<usize> {
        let asked = self.width.or_else(terminal_width);
        asked.filter(|&width| width > 0)
    }

    /// Returns the options of the table's layout.
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
            source_header: None,
        }
    }

    fn asks_for_percentiles(&self) -> bool {
        let spread = ["p50", "p90", "p99", "max"];
        self.columns.iter().any(|column| spread.contains(column))
    }
}

/// Prints the table of a trace.
pub(crate) fn run(args: &TableArgs) -> anyhow::Result<Outcome> {
    let mut analysis = read_selected(&args.trace, args.limits, &args.selected)?;
    if args.group_by.contains(&Grouping::Overload) {
        let trace = args.trace.display();
        tell(&format!(
            "warning: {trace}: traces do not record overloads, so --group-by overload has no effect"
        ));
    }
    let label = args.label()?;
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
            "{trace}: no operators in the trace: showing Python functions"
        ));
    }
    if group_by.python_functions && Sampling::read(analysis.profile().metadata()).is_some() {
        tell(
            "Python functions were sampled: their calls and averages are those of the pieces of \
             time that samples found, not of calls",
        );
    }
    if let Some(label) = label {
        let own = OwnCode::of(analysis.profile().metadata(), &[]);
        analysis = label.view(&analysis, &own);
    }
    if let Some(view) = work.view(&analysis, group_by) {
        analysis = view;
    }
    let found = work.averages(&analysis, group_by);
    tell_left_out(&args.trace, &found.left_out);
    let mut options = args.table_options(args.sort_by(&analysis));
    options.source_header = label.map(label_header);
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
        let profile = analysis.profile();
        print_line(&table_json(&rows, &left_out, profile, &options.rows))?;
    } else {
        print(&table_of_rows(&rows, &TableFacts::of(&analysis), &options)?)?;
    }
    Ok(Outcome::Fine)
}

/// Reports on stderr how many rows the default limit hides.
fn tell_of_more(options: &RowOptions, rows: usize) {
    let more = rows.saturating_sub(options.row_limit.unwrap_or(usize::MAX));
    if more > 0 {
        tell(&format!(
            "{more} more rows not shown; use --row-limit -1 to show all"
        ));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;
    use crate::commands::Command;

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
    fn groupings_are_separated_by_commas() {
        let expected = GroupBy {
            input_shapes: true,
            stack_frames: 3,
            ..GroupBy::default()
        };
        let all = parsed(&["--group-by", "shape,stack:3,overload"]);
        assert_eq!(all.group_by(), expected);
        assert_eq!(parsed(&["--group-by", "stack"]).group_by().stack_frames, 5);
        for wrong in ["stacks", "stack:0", "stack:x", ""] {
            assert!(wrong.parse::<Grouping>().is_err());
        }
    }
}
