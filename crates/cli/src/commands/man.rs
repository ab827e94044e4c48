//! `mindprof man`: the manual, made from the same source as the help.

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Args;
use crate::failure::{Outcome, misused};
use crate::output::print;

const EXAMPLE: &str = "\
Example:
  mindprof man diff | man -l -";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct ManArgs {
    /// The command that the page is about [default: the program]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Prints the page.
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
    // Fills in what commands take over from the program: version and full names.
    program.build();
    let names: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
    let hint = format!("expected one of {}", names.join(", "));
    let found = program.find_subcommand(name).cloned();
    found.ok_or_else(|| misused(format!("no command `{name}`"), hint))
}
