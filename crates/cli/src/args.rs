//! The command line: which commands there are. What each takes stands with the command.

use clap::{Parser, Subcommand};

use crate::commands::completions::CompletionsArgs;
use crate::commands::convert::ConvertArgs;
use crate::commands::diff::DiffArgs;
use crate::commands::info::InfoArgs;
use crate::commands::man::ManArgs;
use crate::commands::memory::MemoryArgs;
use crate::commands::run::RunArgs;
use crate::commands::slim::SlimArgs;
use crate::commands::stacks::StacksArgs;
use crate::commands::table::TableArgs;
use crate::commands::verify::VerifyArgs;
use crate::commands::{
    completions, convert, diff, info, man, memory, run, slim, stacks, table, verify,
};
use crate::failure::Outcome;

const EXIT_CODES: &str = "\
Exit codes:
  0  it worked
  1  it did not: one line on stderr says why. `verify` and `diff` say more by theirs, see their help
  2  the arguments make no sense

Files are read whatever their names: plain or compressed. What had to be repaired is told on stderr.";

/// Says what is in traces that torch.profiler or mindprof wrote.
#[derive(Debug, Parser)]
#[command(name = "mindprof", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prints the events of a trace, summed by name, as a table.
    Table(TableArgs),
    /// Prints or draws where time was spent, by who called.
    Stacks(StacksArgs),
    /// Says how much memory was in use when, or writes it as a timeline.
    Memory(MemoryArgs),
    /// Says what a trace holds: steps, threads, devices, counts, loss, metadata.
    Info(InfoArgs),
    /// Says what is wrong with a file.
    Verify(VerifyArgs),
    /// Writes a trace in another format.
    Convert(ConvertArgs),
    /// Writes a part of a trace: some steps or threads, a stretch of time, the longer events.
    Slim(SlimArgs),
    /// Compares two traces row by row.
    Diff(DiffArgs),
    /// Profiles a Python program without a change of it.
    Run(RunArgs),
    /// Prints the completions for a shell.
    Completions(CompletionsArgs),
    /// Prints the manual page of the program or of one command.
    Man(ManArgs),
}

impl Command {
    /// Does what was asked for.
    pub(crate) fn run(&self) -> anyhow::Result<Outcome> {
        match self {
            Self::Table(args) => table::run(args),
            Self::Stacks(args) => stacks::run(args),
            Self::Memory(args) => memory::run(args),
            Self::Info(args) => info::run(args),
            Self::Verify(args) => verify::run(args),
            Self::Convert(args) => convert::run(args),
            Self::Slim(args) => slim::run(args),
            Self::Diff(args) => diff::run(args),
            Self::Run(args) => run::run(args),
            Self::Completions(args) => completions::run(args),
            Self::Man(args) => man::run(args),
        }
    }

    /// Returns the exit code for a command that could not do what was asked for.
    pub(crate) fn failure_code(&self) -> u8 {
        match self {
            // Theirs is the code 1 for what was found.
            Self::Verify(_) | Self::Diff(_) => 2,
            Self::Table(_)
            | Self::Stacks(_)
            | Self::Memory(_)
            | Self::Info(_)
            | Self::Convert(_)
            | Self::Slim(_)
            | Self::Run(_)
            | Self::Completions(_)
            | Self::Man(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        for command in Args::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            let has_example = help.is_some_and(|help| help.contains("Example:\n  mindprof "));
            assert!(has_example, "{}", command.get_name());
        }
    }
}
