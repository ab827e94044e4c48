//! The program itself: the library's `run` on the arguments of the process.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(mindprof_cli::run(std::env::args_os()))
}
