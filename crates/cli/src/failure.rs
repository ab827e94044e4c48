//! What the user sees when something went wrong: one line, and one more where there is advice.

use std::borrow::Cow;
use std::io::ErrorKind::IsADirectory;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use mindprof_formats::{Error, Format};

use crate::output::tell;

/// The exit code for arguments that make no sense.
const MISUSE: u8 = 2;

/// What a command that did its work found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing that a script would have to act upon.
    Fine,
    /// What the command looks for: a repaired file, a difference over the limit.
    Found,
    /// That the file cannot be read, for a command whose answer that is.
    Unreadable,
}

impl Outcome {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Found => 1,
            Self::Unreadable => 2,
        }
    }
}

/// An error of the program itself, with advice.
#[derive(Debug)]
pub(crate) struct Advised {
    message: String,
    hint: String,
    /// The arguments alone show that it cannot work, whatever is in the files.
    is_misuse: bool,
}

impl fmt::Display for Advised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Advised {}

/// Makes an error with advice.
pub(crate) fn advised(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    let (message, hint) = (message.into(), hint.into());
    let is_misuse = false;
    Advised {
        message,
        hint,
        is_misuse,
    }
    .into()
}

/// As [`advised`], of arguments that make no sense.
pub(crate) fn misused(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    let (message, hint) = (message.into(), hint.into());
    let is_misuse = true;
    Advised {
        message,
        hint,
        is_misuse,
    }
    .into()
}

/// Refuses a name that says no form of what is to be written.
pub(crate) fn refused_name(path: &Path, endings: &[&str]) -> anyhow::Error {
    let message = format!("{}: the end of the name says no format", path.display());
    let endings = endings.join(", ");
    misused(
        message,
        format!("end it in one of {endings}, or say it with --to"),
    )
}

/// Says what went wrong and returns the exit code for it.
///
/// A reader that has seen enough, as in `| head`, is no failure.
pub(crate) fn report(error: &anyhow::Error, code: u8) -> u8 {
    if is_closed_pipe(error) {
        return Outcome::Fine.code();
    }
    tell(&describe(error));
    match error.downcast_ref::<Advised>() {
        Some(own) if own.is_misuse => MISUSE,
        Some(_) | None => code,
    }
}

/// Returns what is said about an error.
fn describe(error: &anyhow::Error) -> String {
    let of_formats = error.downcast_ref::<Error>().and_then(hint);
    let own = || {
        let own = error.downcast_ref::<Advised>();
        own.map(|own| own.hint.as_str().into())
    };
    match of_formats.or_else(own) {
        Some(hint) => format!("error: {error}\nhint: {hint}"),
        None => format!("error: {error}"),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    let of_file = error.downcast_ref::<Error>().and_then(io_cause);
    let own = error.downcast_ref::<io::Error>();
    own.or(of_file).is_some_and(is_closed)
}

fn io_cause(error: &Error) -> Option<&io::Error> {
    match error {
        Error::File { source, .. } => io_cause(source),
        Error::Io(source) => Some(source),
        _ => None,
    }
}

/// Says of a file in a format that is written and not read that it is one.
fn own_format(path: &Path, error: &Error) -> Option<&'static str> {
    let is_other = matches!(error, Error::NotJson { .. } | Error::NotATrace { .. });
    let is_own = Format::of(path).is_some_and(|format| !format.is_read());
    (is_other && is_own)
        .then_some("such files are written for other tools; give the trace that it was made of")
}

/// Says which file of a folder may be meant.
fn in_folder(path: &Path, error: &Error) -> Option<Cow<'static, str>> {
    let is_folder = io_cause(error).is_some_and(|cause| cause.kind() == IsADirectory);
    let files = fs::read_dir(path).ok().filter(|_| is_folder)?;
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let is_trace = |path: &PathBuf| {
        let is_shown = !path.to_string_lossy().contains(char::is_control);
        is_shown && path.is_file() && Format::of(path).is_some_and(Format::is_read)
    };
    // Other tools leave files of the same endings.
    let is_named = |path: &PathBuf| path.to_string_lossy().contains("trace");
    let first = paths
        .filter(is_trace)
        .min_by_key(|path| (!is_named(path), path.clone()));
    Some(match first {
        Some(trace) => format!("give one file in it, such as {}", trace.display()).into(),
        None => "give the path of one file in it".into(),
    })
}

fn hint(error: &Error) -> Option<Cow<'static, str>> {
    if let Error::File { path, source } = error {
        let of_format = own_format(path, source).map(Cow::Borrowed);
        return of_format
            .or_else(|| in_folder(path, source))
            .or_else(|| hint(source));
    }
    hint_without_place(error).map(Cow::Borrowed)
}

const fn hint_without_place(error: &Error) -> Option<&'static str> {
    match error {
        Error::Empty | Error::Truncated { .. } | Error::Compressed(_) | Error::TooLong { .. } => {
            Some("the program that wrote it may have ended too early; record again or copy it anew")
        }
        Error::NotJson { .. } | Error::NotATrace { .. } => {
            Some("give a file that export_chrome_trace wrote")
        }
        Error::Packed { .. } => Some("unpack it first, and give the file that was in it"),
        Error::TooMuch { .. } => {
            Some("if the trace is one that you trust, allow more with --max-bytes, such as 20GiB")
        }
        Error::TooLarge { .. } => Some("allow more bytes, or end the name in .gz"),
        _ => None,
    }
}
