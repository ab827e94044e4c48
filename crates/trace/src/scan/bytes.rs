//! A source as plain bytes, for formats whose readers are libraries.

use std::io::{self, Read};

use super::Source;
use crate::error::{Error, Result};

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.window().is_empty() && !buffer.is_empty() {
            self.more().map_err(io::Error::other)?;
        }
        let bytes = buffer.len().min(self.window().len());
        buffer[..bytes].copy_from_slice(&self.window()[..bytes]);
        self.pass(bytes);
        Ok(bytes)
    }
}

impl Source<'_> {
    /// Returns all bytes that are left.
    ///
    /// # Errors
    /// Like [`Self::more`].
    pub(crate) fn all_bytes(&mut self) -> Result<Vec<u8>> {
        self.forget_lines();
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes).map_err(unwrapped)?;
        Ok(bytes)
    }
}

/// Returns the error of a source that a library passed on.
pub(crate) fn unwrapped(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::Io(error),
    }
}
