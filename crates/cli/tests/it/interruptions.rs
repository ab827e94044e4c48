//! Interruptions while the program works: signals, closed pipes and full devices.
//!
//! In every case an existing file stays unchanged and no partial file remains.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::program::{Run, golden, golden_of, mindprof};

/// A temporary folder that contains an old file.
struct Place {
    folder: tempfile::TempDir,
}

const OLD: &str = "what was there before";

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("out.json"), OLD).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a named pipe.
    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    }

    fn assert_untouched(&self, others: usize) {
        let names: Vec<_> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 1 + others, "{names:?}");
        assert_eq!(fs::read_to_string(self.path("out.json")).unwrap(), OLD);
    }
}

fn spawn(arguments: &[&Path]) -> Child {
    let mut command = mindprof();
    command.args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

const SIGNALS: [(&str, i32); 2] = [("-INT", 2), ("-TERM", 15)];

/// The signal arrives while the program waits for the rest of its input.
#[test]
fn a_signal_ends_the_program_while_it_reads() {
    let place = Place::new();
    let (pipe, out) = (place.pipe("trace.json"), place.path("out.json"));
    for command in ["convert", "slim"] {
        for (signal, number) in SIGNALS {
            let child = spawn(&[command.as_ref(), &pipe, &out]);
            // This blocks until the program opens the other end.
            let mut input = OpenOptions::new().write(true).open(&pipe).unwrap();
            input
                .write_all(br#"{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1},"#)
                .unwrap();
            send(signal, &child);
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.signal(), Some(number), "{command} {output:?}");
            assert!(output.stdout.is_empty() && output.stderr.is_empty());
            place.assert_untouched(1);
        }
    }
}

/// The signal arrives while the program waits for a reader, because its output exceeds the buffer
/// of the pipe.
#[test]
fn a_signal_ends_the_program_while_it_writes() {
    let place = Place::new();
    let pipe = place.pipe("pipe.json");
    for (signal, number) in SIGNALS {
        let child = spawn(&["convert".as_ref(), &golden("trace.json.gz"), &pipe]);
        let mut begin = [0; 16];
        let mut output = File::open(&pipe).unwrap();
        output.read_exact(&mut begin).unwrap();
        assert!(begin.starts_with(b"{"));
        send(signal, &child);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.signal(), Some(number), "{ended:?}");
        place.assert_untouched(1);
    }
}

#[test]
fn a_reader_that_closes_a_pipe_is_not_an_error() {
    let place = Place::new();
    let pipe = place.pipe("pipe.json");
    let child = spawn(&["convert".as_ref(), &golden("trace.json.gz"), &pipe]);
    drop(File::open(&pipe).unwrap());
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (Some(0), "", "")
    );
}

#[test]
fn a_full_device_is_named() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    for arguments in [
        &["convert", "TRACE", "/dev/full", "--to", "json"][..],
        &["convert", "TRACE", "/dev/full", "--to", "pftrace"],
        &["convert", "TRACE", "/dev/full", "--to", "parquet"],
        &[
            "stacks",
            "TRACE",
            "--out",
            "/dev/full",
            "--to",
            "speedscope",
        ],
        &["stacks", "TRACE", "--out", "/dev/full", "--to", "svg"],
    ] {
        let mut command = mindprof();
        for argument in arguments {
            match *argument {
                "TRACE" => command.arg(&trace),
                other => command.arg(other),
            };
        }
        let run = Run::from(command.output().unwrap());
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (Some(1), "error: /dev/full: no space left on device\n"),
            "{arguments:?}"
        );
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
}

#[test]
fn a_full_stdout_is_reported() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    for arguments in [
        &["table"][..],
        &["info"],
        &["stacks"],
        &["memory"],
        &["verify"],
        &["table", "--json"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = mindprof();
        command.args(arguments).arg(&trace).stdout(full);
        let run = Run::from(
            command
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
                .wait_with_output()
                .unwrap(),
        );
        let code = if arguments[0] == "verify" { 2 } else { 1 };
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (Some(code), "error: stdout: no space left on device\n"),
            "{arguments:?}"
        );
    }
}

/// Not even root can create a file in this folder.
#[test]
fn a_folder_that_accepts_no_files_is_named() {
    let trace = golden_of("mlp-full", "trace.json.gz");
    for arguments in [&["convert"][..], &["slim", "--min-duration", "1us"]] {
        let mut command = mindprof();
        command
            .args(arguments)
            .arg(&trace)
            .arg("/proc/self/out.json");
        let run = Run::from(command.output().unwrap());
        let begin = "error: /proc/self/out.json: ";
        assert!(run.stderr.starts_with(begin), "{run:?}");
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
}

/// The kernel kills a process that exceeds its limit on file size, at any point of a file.
#[cfg(target_os = "linux")]
#[test]
fn a_program_killed_while_writing_leaves_the_old_file() {
    for name in ["out.json", "new.json", "new.pftrace"] {
        let place = Place::new();
        let script = "ulimit -c 0; ulimit -f 8; exec \"$0\" convert \"$1\" \"$2\"";
        let output = Command::new("sh")
            .args(["-c", script])
            .arg(env!("CARGO_BIN_EXE_mindprof"))
            .arg(golden("trace.json.gz"))
            .arg(place.path(name))
            .output()
            .unwrap();
        assert!(output.status.signal().is_some(), "{output:?}");
        place.assert_untouched(0);
    }
}
