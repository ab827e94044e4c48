//! Errors of commands: the message and the hint on stderr, and the exit code.
//!
//! An error is one line, `error: …`. A second line, `hint: …`, follows if there is a known fix.
//! Hints come from the command itself ([`advised`], [`misused`]) or from the library error that
//! caused the failure.

use std::borrow::Cow;
use std::io::ErrorKind::IsADirectory;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use mindprof_formats::{Error as FormatError, Format};
use mindprof_report::Error as ReportError;
use mindprof_trace::Error as TraceError;

use crate::output::tell;

/// The exit code of a usage error.
const MISUSE: u8 = 2;

/// The result of a command that ran to its end.
///
/// Commands return it instead of an exit code, so that only [`code`](Self::code) knows the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing that a script has to act upon.
    Fine,
    /// A finding that the command looks for: a repaired file, or growth beyond the limit.
    Found,
    /// An unreadable file, for a command that reports this as its result.
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

/// An error that a command raises itself, with a hint.
///
/// Errors of the library crates pass through as they are; [`report`] finds the hints for them.
#[derive(Debug)]
pub(crate) struct Advised {
    message: String,
    hint: String,
    /// Whether the arguments alone are wrong, whatever the files contain.
    is_misuse: bool,
}

impl fmt::Display for Advised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Advised {}

/// Creates an error with a hint.
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

/// Creates a usage error with a hint.
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

/// Creates the error for an output file whose extension selects no format.
pub(crate) fn refused_name(path: &Path, endings: &[&str]) -> anyhow::Error {
    let message = format!("{}: unknown file extension", path.display());
    let endings = endings.join(", ");
    misused(
        message,
        format!("use one of {endings}, or select a format with --to"),
    )
}

/// Prints the error on stderr and returns its exit code, which is `code` unless it is a usage error.
///
/// A closed pipe, as in `| head`, is not a failure.
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

/// Returns the text of an error, with the hint on a second line if there is one.
fn describe(error: &anyhow::Error) -> String {
    let of_library = Cause::of(error).and_then(Cause::hint);
    let own = || {
        let own = error.downcast_ref::<Advised>();
        own.map(|own| own.hint.as_str().into())
    };
    match of_library.or_else(own) {
        Some(hint) => format!("error: {error}\nhint: {hint}"),
        None => format!("error: {error}"),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let of_library = Cause::of(error).and_then(|cause| cause.kind.io());
    let own = error.downcast_ref::<io::Error>();
    own.or(of_library)
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The innermost library error behind an error, and the file that it concerns.
///
/// Each library crate wraps the errors of those below it, so the cause may lie several layers
/// deep.
#[derive(Clone, Copy)]
struct Cause<'a> {
    path: Option<&'a Path>,
    kind: CauseKind<'a>,
}

#[derive(Clone, Copy)]
enum CauseKind<'a> {
    Io(&'a io::Error),
    Trace(&'a TraceError),
    Other,
}

impl<'a> CauseKind<'a> {
    const fn io(self) -> Option<&'a io::Error> {
        match self {
            Self::Io(error) => Some(error),
            Self::Trace(_) | Self::Other => None,
        }
    }
}

impl<'a> Cause<'a> {
    fn of(error: &'a anyhow::Error) -> Option<Self> {
        if let Some(error) = error.downcast_ref::<TraceError>() {
            return Some(Self::of_trace(None, error));
        }
        if let Some(error) = error.downcast_ref::<FormatError>() {
            return Some(Self::of_format(None, error));
        }
        match error.downcast_ref::<ReportError>()? {
            ReportError::Format(error) => Some(Self::of_format(None, error)),
            _ => None,
        }
    }

    fn of_trace(path: Option<&'a Path>, error: &'a TraceError) -> Self {
        let kind = match error {
            TraceError::File { path, source } => return Self::of_trace(Some(path), source),
            TraceError::Io(error) => CauseKind::Io(error),
            error => CauseKind::Trace(error),
        };
        Self { path, kind }
    }

    fn of_format(path: Option<&'a Path>, error: &'a FormatError) -> Self {
        let kind = match error {
            FormatError::File { path, source } => return Self::of_format(Some(path), source),
            FormatError::Trace(error) => return Self::of_trace(path, error),
            FormatError::Io(error) => CauseKind::Io(error),
            _ => CauseKind::Other,
        };
        Self { path, kind }
    }

    fn hint(self) -> Option<Cow<'static, str>> {
        let of_place = self.path.and_then(|path| match self.kind {
            CauseKind::Trace(error) => own_format(path, error).map(Cow::Borrowed),
            CauseKind::Io(error) => in_folder(path, error),
            CauseKind::Other => None,
        });
        let of_trace = || match self.kind {
            CauseKind::Trace(error) => hint_without_place(error).map(Cow::Borrowed),
            CauseKind::Io(_) | CauseKind::Other => None,
        };
        of_place.or_else(of_trace)
    }
}

/// Returns the hint for a file in a format that is written but not read.
fn own_format(path: &Path, error: &TraceError) -> Option<&'static str> {
    let is_other = matches!(
        error,
        TraceError::NotJson { .. } | TraceError::NotATrace { .. }
    );
    let is_own = Format::of(path).is_some_and(|format| !format.is_read());
    (is_other && is_own)
        .then_some("this format cannot be read back: use the trace that the file was made from")
}

/// Returns the hint for a folder in place of a trace: the first file in it that may be a trace.
fn in_folder(path: &Path, error: &io::Error) -> Option<Cow<'static, str>> {
    let is_folder = error.kind() == IsADirectory;
    let files = fs::read_dir(path).ok().filter(|_| is_folder)?;
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let is_trace = |path: &PathBuf| {
        let is_shown = !path.to_string_lossy().contains(char::is_control);
        is_shown && path.is_file() && Format::of(path).is_some_and(Format::is_read)
    };
    // Other tools write files with the same extensions.
    let is_named = |path: &PathBuf| path.to_string_lossy().contains("trace");
    let first = paths
        .filter(is_trace)
        .min_by_key(|path| (!is_named(path), path.clone()));
    Some(match first {
        Some(trace) => format!("use a file in it, such as {}", trace.display()).into(),
        None => "use a file in it".into(),
    })
}

/// Returns the hint for a trace error that does not depend on the path of the file.
const fn hint_without_place(error: &TraceError) -> Option<&'static str> {
    match error {
        TraceError::Empty
        | TraceError::Truncated { .. }
        | TraceError::Compressed(_)
        | TraceError::TooLong { .. } => {
            Some("record or copy the trace again: the writer may have been interrupted")
        }
        TraceError::NotJson { .. } | TraceError::NotATrace { .. } => {
            Some("use a file written by export_chrome_trace")
        }
        TraceError::Packed { .. } => Some("unpack it and use the file inside"),
        TraceError::TooMuch { .. } => {
            Some("raise the limit with --max-bytes, such as 20GiB, if you trust the file")
        }
        TraceError::TooLarge { .. } => Some("raise --max-size, or compress the output with .gz"),
        _ => None,
    }
}
