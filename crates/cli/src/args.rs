//! The command line: what can be asked, with its defaults.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use mindprof_analyze::GroupBy;
use mindprof_formats::{SortBy, TableOptions, TimeUnit};

/// Says what is in traces that torch.profiler or mindprof wrote.
#[derive(Debug, Parser)]
#[command(name = "mindprof", version, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prints the events of a trace, summed by name, as a table.
    Table(TableArgs),
}

const TABLE_EXAMPLE: &str = "\
Example:
  mindprof table trace.json.gz --sort-by self_cpu_time_total --row-limit 10";

#[derive(Debug, clap::Args)]
#[command(after_help = TABLE_EXAMPLE)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct TableArgs {
    /// The trace: Chrome JSON, plain or compressed with gzip.
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,

    /// Sorts by one of the columns, largest first: `self_cpu_time_total`, `cpu_time_total`, `cpu_time`,
    /// `self_cuda_time_total`, `cuda_time_total`, `self_cpu_memory_usage`, `cpu_memory_usage`, `flops`, `count`, `key`
    /// [default: in the order in which they first ran]
    #[arg(long, value_name = "KEY")]
    sort_by: Option<SortBy>,

    /// How many rows to show; -1 shows all.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        allow_negative_numbers = true
    )]
    row_limit: i64,

    /// Gives each set of input shapes a row of its own.
    #[arg(long)]
    group_by_input_shape: bool,

    /// Gives each set of N innermost stack frames a row of its own.
    #[arg(long, value_name = "N", default_value_t = 0)]
    group_by_stack_n: usize,

    /// Gives calls of Python functions rows too.
    #[arg(long)]
    include_python_functions: bool,

    /// Leaves out rows whose first event ran inside another.
    #[arg(long)]
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
}

impl TableArgs {
    /// Returns which events make up a row.
    pub(crate) fn group_by(&self) -> GroupBy {
        GroupBy {
            input_shapes: self.group_by_input_shape,
            stack_frames: self.group_by_stack_n,
            python_functions: self.include_python_functions,
        }
    }

    /// Returns how the table is laid out.
    pub(crate) fn table_options(&self) -> TableOptions {
        let limit = |width: usize| (width > 0).then_some(width);
        TableOptions {
            sort_by: self.sort_by,
            row_limit: usize::try_from(self.row_limit).ok(),
            max_src_column_width: limit(self.max_src_column_width),
            max_name_column_width: limit(self.max_name_column_width),
            max_shapes_column_width: limit(self.max_shapes_column_width),
            header: self.header.clone(),
            top_level_events_only: self.top_level_only,
            time_unit: self.time_unit,
            percentiles: self.percentiles,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let Command::Table(args) = Args::parse_from(["mindprof", "table", "t"]).command;
        let options = args.table_options();
        let default = TableOptions::default();
        assert_eq!(options.row_limit, default.row_limit);
        assert_eq!(options.max_name_column_width, default.max_name_column_width);
        assert_eq!(
            options.max_shapes_column_width,
            default.max_shapes_column_width
        );
        assert_eq!(options.max_src_column_width, default.max_src_column_width);
        assert_eq!(options.percentiles, default.percentiles);
        assert_eq!(options.sort_by, default.sort_by);
        assert_eq!(args.group_by(), GroupBy::default());
    }
}
