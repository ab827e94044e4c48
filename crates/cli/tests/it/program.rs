//! Runs the program, and finds or writes the traces that it is run on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The exit code and the output of one run of the program.
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

/// Returns a command that runs the program.
pub(crate) fn mindprof() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mindprof"))
}

/// Runs the program with arguments.
pub(crate) fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Run {
    mindprof().args(arguments).output().unwrap().into()
}

impl Run {
    /// Returns stdout; panics if the run failed or wrote to stderr.
    pub(crate) fn printed(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""));
        self.stdout
    }

    /// Returns stderr; panics if the run failed or wrote to stdout.
    pub(crate) fn told(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(0), ""));
        self.stderr
    }

    /// Returns stdout as JSON, whatever the exit code.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
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

/// Returns the path of a recorded trace with a device.
pub(crate) fn device_golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/goldens/h200-torch2.11")
        .join(format!("{name}.trace.json.gz"))
}

/// Writes a small trace of consecutive operators, given as names and microseconds.
pub(crate) fn write_trace(path: &Path, operators: &[(&str, u64)]) {
    let mut start = 100;
    let mut events = Vec::new();
    for (name, duration) in operators {
        events.push(serde_json::json!({
            "ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 2, "ts": start, "dur": duration,
        }));
        start += duration;
    }
    let trace = serde_json::json!({ "traceEvents": events });
    std::fs::write(path, trace.to_string()).unwrap();
}
