//! `mindprof run`: a placeholder, so that help, completions and manual pages list the command.
//!
//! The Python package implements it, because it runs a Python program, and handles the command before
//! this crate sees it. Here it only prints how to get the package.

use std::ffi::OsString;

use clap::Args;

use crate::failure::{Outcome, misused};

#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "Example:\n  mindprof run train.py --epochs 1\n\n\
                  Exit codes: those of the program, 2 usage error"
)]
pub(crate) struct RunArgs {
    /// Options, then a script or `-m MODULE`, then its arguments; `mindprof run --help` of the
    /// Python package lists the options.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "SCRIPT"
    )]
    words: Vec<OsString>,
}

/// Fails with a hint to install the Python package.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<Outcome> {
    let RunArgs { words: _ } = args;
    Err(misused(
        "the standalone mindprof cannot run Python programs",
        "install the Python package and use its `mindprof run` or `python -m mindprof run`",
    ))
}
