//! The `mindprof` program as a library: parses the command line and runs one command.
//!
//! Commands read trace files and print or write the result. Data goes to stdout or a file, messages
//! go to stderr. Both `main.rs`, the standalone binary, and the native module of the Python package
//! call [`run`].

mod args;
mod commands;
mod failure;
mod form;
mod input;
mod known;
mod left_out;
mod output;
mod own_sources;
mod progress;
mod replaced;
mod selected;
mod target;
mod terminal;
mod units;

use std::ffi::OsString;

use args::Args;
use clap::Parser;

/// Runs the program and returns its exit code.
///
/// The first argument is the name of the program itself, as in `std::env::args_os`.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let command = match Args::try_parse_from(arguments) {
        Ok(args) => args.command,
        Err(error) => {
            // The exit code still reports the error if stderr is closed.
            let _ = error.print();
            return error.exit_code() as u8;
        }
    };
    match command.run() {
        Ok(outcome) => outcome.code(),
        Err(error) => failure::report(&error, command.failure_code()),
    }
}
