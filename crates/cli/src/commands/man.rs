//! `mindprof man`: prints a manual page, generated from the same source as the help.

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Args;
use crate::failure::{Outcome, misused};
use crate::output::print;

const EXAMPLE: &str = "\
Example:
  mindprof man diff | man -l -

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct ManArgs {
    /// Command to describe [default: the program]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Prints the manual page.
pub(crate) fn run(args: &ManArgs) -> anyhow::Result<Outcome> {
    let page = match &args.command {
        None => Args::command(),
        Some(name) => page_of(name)?,
    };
    let mut text = Vec::new();
    Man::new(page).render(&mut text)?;
    print(&String::from_utf8(text)?)?;
    Ok(Outcome::Fine)
}

fn page_of(name: &str) -> anyhow::Result<Command> {
    let mut program = Args::command();
    // Fills in the version and the full names that commands inherit from the program.
    program.build();
    let names: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
    let hint = format!("use one of {}", names.join(", "));
    let found = program.find_subcommand(name).cloned();
    found.ok_or_else(|| misused(format!("unknown command `{name}`"), hint))
}
