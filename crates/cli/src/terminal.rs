//! How wide the terminal is, where there is one.

/// Returns how many columns the terminal that stdout goes to has; nothing of a pipe or a file.
pub(crate) fn terminal_width() -> Option<usize> {
    #[cfg(unix)]
    {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        // Some terminals do not know.
        let columns = usize::from(size.ws_col);
        (columns > 0).then_some(columns)
    }
    #[cfg(not(unix))]
    None
}
