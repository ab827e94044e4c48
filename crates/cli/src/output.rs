//! Output of commands: data to stdout or files, messages to stderr.
//!
//! Names in a trace are untrusted, so control characters are escaped on their way to stdout and
//! stderr. Files get the data as it is.

use std::fs;
use std::io::{self, IsTerminal, StdoutLock, Write};
#[cfg(unix)]
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use mindprof_report::{memory_text, visible_lines};
use mindprof_trace::{
    Compression, Effort, Error, FileError, Result, write_compressed, write_file_with,
};

use crate::progress::Busy;

/// The path that means stdout.
const DASH: &str = "-";

/// The destination of a command's result: stdout or a file.
///
/// Created from the path on the command line. Files are written atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    File(PathBuf),
}

impl Output {
    pub(crate) fn of(path: &Path) -> Self {
        // A name for stdout must reach the open file, which may be appended to, not replace it.
        if path == Path::new(DASH) || path == Path::new("/dev/stdout") {
            Self::Stdout
        } else {
            Self::File(path.to_path_buf())
        }
    }

    /// Returns the path, or `stdout`, for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "stdout".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Returns whether it is stdout, a pipe or a device, so that the name implies no format.
    pub(crate) fn is_special(&self) -> bool {
        match self {
            Self::Stdout => true,
            Self::File(path) => {
                fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
            }
        }
    }

    /// Calls `write` and returns its result with the number of bytes written.
    ///
    /// `compression` applies to stdout; the compression of a file follows from its name.
    pub(crate) fn write<T, E: FileError + From<Error>>(
        &self,
        compression: Option<Compression>,
        write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
    ) -> Result<(T, u64), E> {
        let _busy = Busy::new(format!("writing {}", self.name()));
        match self {
            Self::File(path) => write_file_with(path, Effort::Small, write),
            Self::Stdout if io::stdout().is_terminal() => {
                let mut text = Vec::new();
                let made = write(&mut text)?;
                print(&String::from_utf8_lossy(&text))?;
                Ok((made, text.len() as u64))
            }
            Self::Stdout => {
                let stdout = open_stdout()?;
                let written = write_compressed(stdout, compression, Effort::Small, write);
                written.map_err(|error| error.at(Path::new("stdout")))
            }
        }
    }

    /// Reports the written file on stderr: its path, its size and a description.
    pub(crate) fn tell_written(&self, bytes: u64, what: &str) {
        let size = memory_text(i64::try_from(bytes).unwrap_or(i64::MAX));
        tell(&format!("wrote {} ({size}, {what})", self.name()));
    }
}

/// Returns stdout, or an error if it is closed, which the standard library would ignore.
fn open_stdout() -> Result<StdoutLock<'static>> {
    let stdout = io::stdout();
    #[cfg(unix)]
    {
        let copied = stdout.as_fd().try_clone_to_owned();
        copied.map_err(|error| Error::from(error).at(Path::new("stdout")))?;
    }
    Ok(stdout.lock())
}

/// Prints a text on stdout and flushes it.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = open_stdout()?;
    let printed = stdout
        .write_all(visible_lines(text).as_bytes())
        .and_then(|()| stdout.flush());
    printed.map_err(|error| Error::from(error).at(Path::new("stdout")))
}

/// Prints a text and a line break on stdout.
pub(crate) fn print_line(text: &str) -> Result<()> {
    print(&format!("{text}\n"))
}

/// Prints a message on stderr.
pub(crate) fn tell(text: &str) {
    // A closed stderr is no reason to fail: the result is elsewhere.
    let _ = io::stderr().write_all(format!("{}\n", visible_lines(text)).as_bytes());
}
