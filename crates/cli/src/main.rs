//! The program itself: the library's `run` on the arguments of the process.

use std::process::ExitCode;

// Elsewhere a block has to be given back with the alignment that it was taken with.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mindprof_cli::HugePages = mindprof_cli::HugePages;

fn main() -> ExitCode {
    ExitCode::from(mindprof_cli::run(std::env::args_os()))
}
