//! Data on stdout, all else on stderr; neither with control characters of what was read.

use std::io::{self, Write};
use std::path::Path;

use mindprof_formats::{Error, Result};
use mindprof_report::visible_lines;

/// Prints a text and sees it off.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
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
