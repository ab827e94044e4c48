//! The standalone binary: calls the library's `run` with the arguments of the process.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mindprof_allocator::HugePages = mindprof_allocator::HugePages;

fn main() -> ExitCode {
    ExitCode::from(mindprof_cli::run(std::env::args_os()))
}
