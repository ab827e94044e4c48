//! The top level of the command line: the list of commands, in the order of `mindprof --help`.
//!
//! Each command defines its own arguments in its module under `commands`.

use clap::{Parser, Subcommand};

use crate::commands::{
    completions, convert, diff, info, man, memory, run, slim, stacks, table, verify,
};
use crate::failure::Outcome;

const EXIT_CODES: &str = "\
Run `mindprof COMMAND --help` for the options of a command and an example.
Traces may be compressed with gzip or zstd, whatever their names.

Exit codes: 0 success, 1 failure, 2 usage error
`verify` and `diff` report findings by exit code: see their help.";

/// The parsed command line.
#[derive(Debug, Parser)]
#[command(
    name = "mindprof",
    about = "Record and analyze traces of PyTorch programs",
    version,
    propagate_version = true,
    after_help = EXIT_CODES
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Profile an unmodified Python program.
    Run(run::RunArgs),
    /// Print a table of operators and their times.
    Table(table::TableArgs),
    /// Print time by call stack, or draw a flame graph.
    Stacks(stacks::StacksArgs),
    /// Print peak memory and its owners, or write a timeline.
    Memory(memory::MemoryArgs),
    /// Print the steps, threads, devices and metadata of a trace.
    Info(info::InfoArgs),
    /// Compare two traces row by row.
    Diff(diff::DiffArgs),
    /// Cut a trace down to some steps, threads or a size.
    Slim(slim::SlimArgs),
    /// Convert a trace to another format.
    Convert(convert::ConvertArgs),
    /// Check a trace for faults.
    Verify(verify::VerifyArgs),
    /// Print shell completions.
    Completions(completions::CompletionsArgs),
    /// Print the manual page of the program or of a command.
    Man(man::ManArgs),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(&self) -> anyhow::Result<Outcome> {
        match self {
            Self::Run(args) => run::run(args),
            Self::Table(args) => table::run(args),
            Self::Stacks(args) => stacks::run(args),
            Self::Memory(args) => memory::run(args),
            Self::Info(args) => info::run(args),
            Self::Diff(args) => diff::run(args),
            Self::Slim(args) => slim::run(args),
            Self::Convert(args) => convert::run(args),
            Self::Verify(args) => verify::run(args),
            Self::Completions(args) => completions::run(args),
            Self::Man(args) => man::run(args),
        }
    }

    /// Returns the exit code for a failure of the command.
    pub(crate) fn failure_code(&self) -> u8 {
        match self {
            // These two report a finding with code 1, so a failure needs another.
            Self::Verify(_) | Self::Diff(_) => 2,
            Self::Run(_)
            | Self::Table(_)
            | Self::Stacks(_)
            | Self::Memory(_)
            | Self::Info(_)
            | Self::Slim(_)
            | Self::Convert(_)
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

    #[test]
    fn help_fits_eighty_columns() {
        let program = Args::command();
        for command in program.get_subcommands().chain([&program]) {
            let after = command.get_after_help().map(ToString::to_string);
            for line in after.iter().flat_map(|text| text.lines()) {
                assert!(line.chars().count() <= 80, "{line}");
            }
            // clap breaks these lines: three of them have room for this many characters.
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string);
                let help = help.unwrap_or_default();
                assert!(help.chars().count() <= 160, "{help}");
            }
        }
    }
}
