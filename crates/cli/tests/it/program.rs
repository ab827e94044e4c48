//! The program and the recorded traces it is run on.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Returns the program, ready to be given arguments.
pub(crate) fn mindprof() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mindprof"))
}

/// Runs `mindprof table TRACE` with further arguments.
pub(crate) fn table(trace: &Path, arguments: &[&str]) -> Run {
    let mut command = mindprof();
    command.arg("table").arg(trace).args(arguments);
    command.output().unwrap().into()
}

/// Returns the path of a recorded file of the session with CPU columns only.
pub(crate) fn golden(suffix: &str) -> PathBuf {
    golden_of("gpt-plain", suffix)
}

/// Returns the path of a recorded file of a session without a device.
pub(crate) fn golden_of(name: &str, suffix: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/goldens/cpu-torch2.15")
        .join(format!("{name}.{suffix}"))
}
