//! `mindprof completions`: prints the completion script of a shell.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::Args;
use crate::failure::Outcome;
use crate::output::print;

const EXAMPLE: &str = "\
Example:
  mindprof completions bash \\
    > ~/.local/share/bash-completion/completions/mindprof

Exit codes: 0 success, 1 failure, 2 usage error";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completion script.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    generate(args.shell, &mut Args::command(), "mindprof", &mut script);
    print(&String::from_utf8(script)?)?;
    Ok(Outcome::Fine)
}
