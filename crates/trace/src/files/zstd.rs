//! The zstd writer: each piece of the text becomes a frame of its own, and readers join the frames.

use std::io::{self, Write};

use ruzstd::encoding::{CompressionLevel, compress};

/// The size of a piece. The encoder has no window across pieces.
const PIECE_BYTES: usize = 1 << 22;

/// Compresses the output of `write` into `out`.
///
/// # Errors
/// If `write` fails or `out` cannot be written to.
pub(super) fn write_zstd<T, E: From<io::Error>>(
    out: impl Write,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let mut writer = Writer {
        out,
        text: Vec::new(),
        has_frame: false,
    };
    let made = write(&mut writer)?;
    // Empty output needs a frame too.
    if !writer.text.is_empty() || !writer.has_frame {
        writer.pack()?;
    }
    writer.out.flush()?;
    Ok(made)
}

/// Compresses the text written to it, one full piece at a time.
struct Writer<W> {
    out: W,
    text: Vec<u8>,
    has_frame: bool,
}

impl<W: Write> Writer<W> {
    fn pack(&mut self) -> io::Result<()> {
        let mut packed = Vec::new();
        compress(&self.text[..], &mut packed, CompressionLevel::Fastest);
        self.text.clear();
        self.has_frame = true;
        self.out.write_all(&packed)
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = (PIECE_BYTES - self.text.len()).min(bytes.len());
        self.text.extend_from_slice(&bytes[..taken]);
        if self.text.len() == PIECE_BYTES {
            self.pack()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::scan::ZstdFrames;

    #[test]
    fn text_of_any_length_comes_back() {
        for bytes in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES + 7] {
            let text: Vec<u8> = b"{\"name\":\"aten::add\"}"
                .iter()
                .copied()
                .cycle()
                .take(bytes)
                .collect();
            let mut packed = Vec::new();
            write_zstd(&mut packed, |out| out.write_all(&text)).unwrap();
            let mut unpacked = Vec::new();
            ZstdFrames::new(&packed[..])
                .read_to_end(&mut unpacked)
                .unwrap();
            assert!(unpacked == text, "{bytes}");
            assert!(!packed.is_empty() && packed.len() < 40 + bytes / 100);
        }
    }
}
