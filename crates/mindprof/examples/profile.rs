//! Profiles a small program with threads, prints its table and writes its trace.
//!
//! ```text
//! cargo run --package mindprof --example profile
//! ```

#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::path::Path;
use std::thread;

use mindprof::{Metric, Options, RowOptions, SortBy, TableOptions};

fn sum_of_squares(rounds: u64) -> u64 {
    mindprof::scope!("sum_of_squares");
    (0..rounds).fold(0, |sum, round| sum ^ (round * round))
}

fn worker() -> u64 {
    mindprof::scope!("worker");
    (0..5).map(|part| sum_of_squares(part * 100_000)).sum()
}

fn main() -> mindprof::Result<()> {
    let (sum, profile) = mindprof::profile(Options::default(), || {
        let threads: Vec<_> = (0..3).map(|_| thread::spawn(worker)).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .fold(0, |sum, part| sum ^ part)
    });
    let options = TableOptions {
        rows: RowOptions {
            sort_by: Some(SortBy::Metric(Metric::SelfCpuTimeTotal)),
            ..RowOptions::default()
        },
        ..TableOptions::default()
    };
    println!("{}", mindprof::table(&profile, &options));
    let trace = Path::new("out/profile.trace.json");
    mindprof::write_trace_file(&profile, trace)?;
    println!("the sum is {sum}; wrote {}", trace.display());
    Ok(())
}
