//! Compression of files: the format that a file name selects, and the effort to spend.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::gzip::write_gzip;
use super::zstd::write_zstd;

/// The size of writes to the system. With smaller ones, system calls dominate the time of a long
/// file.
const BUFFER_BYTES: usize = 1 << 16;

/// A compression format.
///
/// Writers choose it by the ending of the file name, readers by the magic number of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// The gzip format.
    Gzip,
    /// The zstd format.
    Zstd,
}

impl Compression {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Gzip, Self::Zstd];

    /// Returns the ending of file names in this format.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }

    /// Returns the format that the ending of a file name selects, ignoring case.
    pub fn of(path: &Path) -> Option<Self> {
        Self::split(&path.to_string_lossy().to_ascii_lowercase()).1
    }

    /// Splits the ending off a lower-case file name, and returns the format it selects.
    pub fn split(name: &str) -> (&str, Option<Self>) {
        let found = Self::ALL.into_iter().find_map(|compression| {
            let rest = name.strip_suffix(compression.ending())?;
            Some((rest, Some(compression)))
        });
        found.unwrap_or((name, None))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// The effort to spend on compression.
///
/// It selects the gzip level; zstd has only one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Compress quickly, because a recorded program is waiting.
    #[default]
    Fast,
    /// Compress well: a trace that is written again must not grow, and torch writes its own at the
    /// best level of gzip.
    Small,
}

/// Compresses the output of `write` into `out`, and flushes it.
///
/// Returns the value of `write` and the number of bytes that `out` received.
///
/// # Errors
/// If `write` fails or `out` cannot be written to.
pub fn write_compressed<T, E: From<io::Error>>(
    out: impl Write,
    compression: Option<Compression>,
    effort: Effort,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<(T, u64), E> {
    let mut counted = BufWriter::with_capacity(BUFFER_BYTES, Counted { out, bytes: 0 });
    let made = match compression {
        None => write(&mut counted)?,
        Some(Compression::Gzip) => write_gzip(&mut counted, effort, write)?,
        Some(Compression::Zstd) => write_zstd(&mut counted, write)?,
    };
    counted.flush()?;
    Ok((made, counted.get_ref().bytes))
}

/// Counts the bytes written through it.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.out.write(bytes)?;
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::scan::ZstdFrames;

    #[test]
    fn the_end_of_a_name_says_how() {
        let of = |name: &str| Compression::of(Path::new(name));
        assert_eq!(of("a.json.gz"), Some(Compression::Gzip));
        assert_eq!(of("A.JSON.ZST"), Some(Compression::Zstd));
        assert_eq!(of("gz"), None);
        assert_eq!(Compression::split("a.json.zst").0, "a.json");
    }

    #[test]
    fn the_bytes_that_went_out_are_counted() {
        let text = b"aten::mm ".repeat(300_000);
        for compression in [None, Some(Compression::Gzip), Some(Compression::Zstd)] {
            let mut out = Vec::new();
            let write = |out: &mut dyn Write| out.write_all(&text);
            let ((), bytes) =
                write_compressed(&mut out, compression, Effort::Small, write).unwrap();
            assert_eq!(bytes, out.len() as u64, "{compression:?}");
            let mut unpacked = Vec::new();
            match compression {
                None => unpacked.clone_from(&out),
                Some(Compression::Gzip) => {
                    let mut decoder = flate2::bufread::GzDecoder::new(&out[..]);
                    decoder.read_to_end(&mut unpacked).map(drop).unwrap();
                }
                Some(Compression::Zstd) => {
                    let mut decoder = ZstdFrames::new(&out[..]);
                    decoder.read_to_end(&mut unpacked).map(drop).unwrap();
                }
            }
            assert!(unpacked == text, "{compression:?}");
        }
    }
}
