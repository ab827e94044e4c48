//! The mindprof program as a library: reads trace files and says what is in them.
//!
//! Data goes to stdout, everything else to stderr. `main.rs` runs it as a plain binary, the native
//! module of the Python package as the command that comes with it.

mod args;
mod commands;
mod failure;
mod form;
mod input;
mod known;
mod left_out;
mod output;
mod progress;
mod target;
mod terminal;
mod units;

use std::ffi::OsString;

use args::Args;
use clap::Parser;

/// Runs the program on its arguments, of which the first is its own name, and returns its exit
/// code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let command = match Args::try_parse_from(arguments) {
        Ok(args) => args.command,
        Err(error) => {
            // When no one listens any more there is no one left to tell.
            let _ = error.print();
            return error.exit_code() as u8;
        }
    };
    match command.run() {
        Ok(outcome) => outcome.code(),
        Err(error) => failure::report(&error, command.failure_code()),
    }
}
