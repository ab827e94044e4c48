//! Data on stdout.

use std::io::{self, Write};
use std::path::Path;

use mindprof_formats::{Error, Result};

/// Prints a text and sees it off.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let printed = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    printed.map_err(|error| Error::from(error).at(Path::new("stdout")))
}

/// Prints a text on a line of its own.
pub(crate) fn print_line(text: &str) -> Result<()> {
    print(&format!("{text}\n"))
}
