//! The output of packets: many are compressed into one, as Perfetto's own service does.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::fields::trace;
use super::message::Message;
use crate::error::Result;

/// Level 1 would save a quarter of the time of a conversion, but make files a third longer.
const LEVEL: u32 = 3;

/// The number of bytes of packets that are compressed together.
const CHUNK_BYTES: usize = 1 << 20;

/// Collects packets and writes them in compressed chunks.
///
/// Call [`Packets::finish`] at the end, or the last chunk is lost.
pub(super) struct Packets<W> {
    out: W,
    pending: Message,
}

impl<W: Write> Packets<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            pending: Message::default(),
        }
    }

    /// Adds a packet.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Message)) -> Result<()> {
        self.pending.message(trace::PACKET, write);
        if self.pending.as_bytes().len() >= CHUNK_BYTES {
            self.compress()?;
        }
        Ok(())
    }

    /// Writes the remaining packets.
    pub(super) fn finish(mut self) -> Result<()> {
        self.compress()?;
        Ok(self.out.flush()?)
    }

    fn compress(&mut self) -> Result<()> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
        encoder.write_all(self.pending.as_bytes())?;
        let compressed = encoder.finish()?;
        self.pending.clear();
        let mut packet = Message::default();
        packet.message(trace::PACKET, |packet| {
            packet.bytes(trace::COMPRESSED, &compressed);
        });
        Ok(self.out.write_all(packet.as_bytes())?)
    }
}
