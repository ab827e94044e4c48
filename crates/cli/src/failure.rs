//! What the user sees when something went wrong: one line, and one more where there is advice.

use std::io::{self, Write};
use std::process::ExitCode;

use mindprof_formats::Error;

/// Says what went wrong and returns the exit code for it.
///
/// A reader that has seen enough, as in `| head`, is no failure.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let hint = match error.downcast_ref::<Error>().and_then(hint) {
        Some(hint) => format!("hint: {hint}\n"),
        None => String::new(),
    };
    // When stderr is gone there is no one left to tell.
    let _ = write!(io::stderr(), "error: {error}\n{hint}");
    ExitCode::FAILURE
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::File { source, .. } => hint(source),
        Error::Io(source) if source.kind() == io::ErrorKind::IsADirectory => {
            Some("give the path of one trace file in it")
        }
        Error::Empty | Error::Truncated { .. } | Error::Compressed(_) | Error::TooLong { .. } => {
            Some("the program that wrote it may have ended too early; record again or copy it anew")
        }
        Error::NotJson { .. } | Error::NotATrace { .. } => {
            Some("give a file that export_chrome_trace wrote")
        }
        _ => None,
    }
}
