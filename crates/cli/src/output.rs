//! Data on stdout.

use std::io::{self, Write};

/// Prints a text and sees it off.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints a text on a line of its own.
pub(crate) fn print_line(text: &str) -> io::Result<()> {
    print(&format!("{text}\n"))
}
