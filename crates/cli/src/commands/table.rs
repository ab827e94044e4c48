//! `mindprof table`: the events of a trace, summed by name.

use std::io::{self, Write};

use mindprof_analyze::{Tree, averages};
use mindprof_formats::{read_trace_file, table};

use crate::args::TableArgs;

/// Prints the table of a trace.
pub(crate) fn run(args: &TableArgs) -> anyhow::Result<()> {
    let profile = read_trace_file(&args.trace)?;
    let tree = Tree::build(&profile);
    let averages = averages(&profile, &tree, args.group_by());
    let text = table(&profile, &averages, &args.table_options());
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
