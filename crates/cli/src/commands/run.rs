//! `mindprof run`: known here, so that help, completions and manual pages have it; done by the Python
//! package, because the program that is profiled is one of Python's.

use std::ffi::OsString;

use clap::Args;

use crate::failure::{Outcome, misused};

#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "Example:\n  mindprof run train.py --epochs 1"
)]
pub(crate) struct RunArgs {
    /// Options, then a script or `-m` and a module, then its own arguments; `mindprof run --help` in
    /// the Python package says which there are.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "SCRIPT"
    )]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<Outcome> {
    let RunArgs { words: _ } = args;
    Err(misused(
        "this program has no Python to run another in",
        "install the Python package: its `mindprof run` and `python -m mindprof run` do it",
    ))
}
