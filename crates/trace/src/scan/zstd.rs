//! A stream over zstd data: frames one after the other, without the skippable ones.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Decompresses the frames of `input` as one text.
pub(crate) struct ZstdFrames<R> {
    input: R,
    decoder: FrameDecoder,
    is_inside: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            decoder: FrameDecoder::new(),
            is_inside: false,
        }
    }

    /// Opens the next frame. Returns whether there is one.
    fn open(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = self.input.by_ref().take(u64::from(length));
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_inside && !self.open()? {
                return Ok(0);
            }
            self.is_inside = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.is_inside = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        ZstdFrames::new(bytes).read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn frames_are_joined_and_skippable_ones_passed_over() {
        let frame = |text: &[u8]| compress_to_vec(text, CompressionLevel::Fastest);
        let mut bytes = frame(b"one ");
        bytes.extend(0x184d_2a50_u32.to_le_bytes());
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(b"abc");
        bytes.extend(frame(&b"two ".repeat(100_000)));
        let expected = [&b"one "[..], &b"two ".repeat(100_000)].concat();
        assert_eq!(unpacked(&bytes).unwrap(), expected);
        assert!(unpacked(&bytes[..bytes.len() - 9]).is_err());
        assert!(unpacked(b"\x28\xb5\x2f\xfdnonsense").is_err());
    }
}
