//! `mindprof table`: the events of a trace, summed by name.

use std::io::{self, Write};

use mindprof_analyze::{Analysis, averages};
use mindprof_formats::{read_trace_file, table};

use crate::args::TableArgs;

/// Prints the table of a trace.
pub(crate) fn run(args: &TableArgs) -> anyhow::Result<()> {
    let analysis = Analysis::build(read_trace_file(&args.trace)?);
    let group_by = args.group_by();
    let averages = averages(&analysis, group_by);
    let text = table(&analysis, &averages, group_by, &args.table_options());
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
