//! The table of readers: which input formats there are, and which one an input is in.
//!
//! A new input format is a module in the folder `readers` that implements [`Reader`], and one more
//! entry in [`READERS`]; the reader of Chrome traces is in `chrome`, those of NPU profiles in `ascend`.

use crate::ascend::{DatabaseReader, TableReader};
use crate::chrome::ChromeReader;
use crate::error::Result;
use crate::read_options::ReadOptions;
use crate::reading::PartReading;
use crate::scan::Source;

/// Reads one input format.
///
/// Implementors know the format and the model, and nothing about analysis: they turn bytes into a
/// [`mindprof_model::Part`].
pub(crate) trait Reader: Sync {
    /// Returns whether an input that begins with these bytes, after decompression, is in this
    /// format. If no reader recognizes an input, all of them are asked again about the text behind a
    /// byte order mark and leading white space.
    fn recognizes(&self, head: &[u8]) -> bool;

    /// Reads the whole input.
    ///
    /// # Errors
    /// If the input cannot be read, or turns out not to be in this format after all.
    fn read(&self, source: Source<'_>, options: &ReadOptions<'_>) -> Result<PartReading>;
}

/// Every reader. The first one that recognizes an input reads it.
static READERS: &[&dyn Reader] = &[&ChromeReader, &DatabaseReader, &TableReader];

/// Returns the reader for an input that begins with `head`.
pub(crate) fn reader_of(head: &[u8]) -> Option<&'static dyn Reader> {
    READERS
        .iter()
        .copied()
        .find(|reader| reader.recognizes(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_of_json_containers_selects_the_chrome_reader() {
        for head in [&b"{\"traceEvents\""[..], b"[", b"[{"] {
            assert!(reader_of(head).is_some());
        }
        for head in [&b"SQLite format 2\0"[..], b"PK\x03\x04", b"\x80\x04", b"12"] {
            assert!(reader_of(head).is_none());
        }
    }
}
