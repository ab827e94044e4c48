//! The mindprof program: reads trace files and says what is in them.
//!
//! Data goes to stdout, everything else to stderr.

mod args;
mod commands;
mod failure;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Table(args) => commands::table::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
