//! The top level of the command line. The commands are in `commands`.

use clap::Parser;

use crate::commands::Command;

const EXIT_CODES: &str = "\
Run `mindprof COMMAND --help` for the options of a command and an example.
Traces may be compressed with gzip or zstd, whatever their names.

Exit codes: 0 success, 1 failure, 2 usage error
`run` returns the program's exit code.
`verify` and `diff` report findings by exit code: see their help.";

/// The parsed command line.
#[derive(Debug, Parser)]
#[command(
    name = "mindprof",
    about = "Profile PyTorch and Python programs, and analyze their traces",
    version,
    propagate_version = true,
    after_help = EXIT_CODES
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
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
