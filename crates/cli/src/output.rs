//! Where commands write to: data on stdout or in files, all else on stderr; neither screen gets
//! control characters of what was read.

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

/// Stands for the standard output, as for the standard input.
const DASH: &str = "-";

/// Where something is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    File(PathBuf),
}

impl Output {
    pub(crate) fn of(path: &Path) -> Self {
        if path == Path::new(DASH) {
            Self::Stdout
        } else {
            Self::File(path.to_path_buf())
        }
    }

    /// Returns what it is called.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "stdout".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Returns whether it is a pipe or a device, of which the name says nothing.
    pub(crate) fn is_special(&self) -> bool {
        match self {
            Self::Stdout => true,
            Self::File(path) => {
                fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
            }
        }
    }

    /// Writes what `write` writes; a file is compressed as its name says. Returns what `write`
    /// returns, and how many bytes there are.
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

    /// Says what was written.
    pub(crate) fn tell_written(&self, bytes: u64, what: &str) {
        let size = memory_text(i64::try_from(bytes).unwrap_or(i64::MAX));
        tell(&format!("wrote {} ({size}, {what})", self.name()));
    }
}

/// Returns stdout, if there is one: the library takes one that is closed for one that swallows all.
fn open_stdout() -> Result<StdoutLock<'static>> {
    let stdout = io::stdout();
    #[cfg(unix)]
    {
        let copied = stdout.as_fd().try_clone_to_owned();
        copied.map_err(|error| Error::from(error).at(Path::new("stdout")))?;
    }
    Ok(stdout.lock())
}

/// Prints a text and sees it off.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = open_stdout()?;
    let printed = stdout
        .write_all(visible_lines(text).as_bytes())
        .and_then(|()| stdout.flush());
    printed.map_err(|error| Error::from(error).at(Path::new("stdout")))
}

/// Prints a text on a line of its own.
pub(crate) fn print_line(text: &str) -> Result<()> {
    print(&format!("{text}\n"))
}

/// Says something on stderr.
pub(crate) fn tell(text: &str) {
    // When stderr is gone there is no one left to tell.
    let _ = io::stderr().write_all(format!("{}\n", visible_lines(text)).as_bytes());
}
