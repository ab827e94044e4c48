//! Reads a trace that torch.profiler or mindprof wrote, prints its table and writes it for Perfetto.
//!
//! ```text
//! cargo run --package mindprof --example read -- trace.json.gz trace.pftrace
//! ```

#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::env;
use std::path::PathBuf;

use mindprof::{Metric, RowOptions, SortBy, TableOptions};

fn main() -> mindprof::Result<()> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        println!("usage: read TRACE OUT");
        return Ok(());
    };
    let profile = mindprof::read_trace_file(&input)?;
    let options = TableOptions {
        rows: RowOptions {
            sort_by: Some(SortBy::Metric(Metric::SelfCpuTimeTotal)),
            row_limit: Some(5),
            ..RowOptions::default()
        },
        ..TableOptions::default()
    };
    println!("{}", mindprof::table(&profile, &options));
    mindprof::write_perfetto_file(&profile, &output)
}
