//! The width of the terminal.

/// Returns the number of columns of the terminal behind stdout; `None` if stdout is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    #[cfg(unix)]
    {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        // Some terminals report zero.
        let columns = usize::from(size.ws_col);
        (columns > 0).then_some(columns)
    }
    #[cfg(not(unix))]
    None
}
