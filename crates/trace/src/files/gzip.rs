//! Parallel gzip: threads compress pieces of the text, which are written in order as one member
//! that every reader accepts. The bytes do not depend on the number of threads.
//!
//! Against flate2's own encoder at the same level, an 80 MB trace takes 0.60 of the wall time on 2
//! free cores, for 1.05 of the CPU time. If other processes compete for both cores, it takes 1.1 to
//! 1.5 of the wall time and 1.1 of the CPU time. These are ratios of medians from
//! `cargo bench -p mindprof-trace --bench write -- compressed_json`.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

use super::compression::Effort;

/// As fast as level 1 and a quarter smaller. Each higher level costs more time than it saves bytes
/// (`gzip_at_level` in `benches/write.rs`).
const FAST: u32 = 2;

/// The level at which torch writes its traces.
const SMALL: u32 = 9;

/// The size of a piece.
const PIECE_BYTES: usize = 1 << 19;

/// The length of the preceding text that a piece may refer back to: the most that gzip allows.
const WINDOW_BYTES: usize = 1 << 15;

/// The largest number of helper threads. The writer produces text about five times as fast as one
/// thread compresses it.
const MOST_HELPERS: usize = 4;

/// The header of a gzip member without a file name, a time or an operating system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Compresses the output of `write` into `out`. Text shorter than one piece starts no thread.
///
/// # Errors
/// If `write` fails or `out` cannot be written to.
pub(super) fn write_gzip<T, E: From<io::Error>>(
    out: impl Write,
    effort: Effort,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    write_gzip_with(MOST_HELPERS.min(cores - 1), effort, out, write)
}

fn write_gzip_with<T, E: From<io::Error>>(
    most_helpers: usize,
    effort: Effort,
    mut out: impl Write,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    out.write_all(&HEADER)?;
    // The helpers end when the writer is dropped, on success, failure or panic.
    thread::scope(|scope| {
        let helpers = Helpers::new(scope, most_helpers, effort);
        let mut writer = Writer::new(out, effort, helpers);
        let made = write(&mut writer)?;
        writer.finish()?;
        Ok(made)
    })
}

/// Compresses the text written to it.
///
/// It passes each full piece to a helper, or compresses it itself if all helpers are busy, so that
/// only a few pieces wait at any time. Flushing does not end a piece, because that would change the
/// output.
struct Writer<'scope, 'env, W> {
    out: W,
    text: Vec<u8>,
    /// The end of the text before the current piece.
    before: Vec<u8>,
    packer: Packer,
    helpers: Helpers<'scope, 'env>,
    /// The pieces that are not written yet, in order.
    waiting: VecDeque<Waiting>,
    /// Pieces whose memory can be reused.
    spare: Vec<Piece>,
    checksum: Crc,
}

enum Waiting {
    Packed(Piece),
    /// A helper will send it.
    Coming(Receiver<io::Result<Piece>>),
}

impl<'scope, 'env, W: Write> Writer<'scope, 'env, W> {
    fn new(out: W, effort: Effort, helpers: Helpers<'scope, 'env>) -> Self {
        Self {
            out,
            text: Vec::new(),
            before: Vec::new(),
            packer: Packer::new(effort),
            helpers,
            waiting: VecDeque::new(),
            spare: Vec::new(),
            checksum: Crc::new(),
        }
    }

    /// Compresses the current piece, in a helper if one is free.
    fn pass_on(&mut self) -> io::Result<()> {
        let mut piece = self.spare.pop().unwrap_or_default();
        std::mem::swap(&mut piece.text, &mut self.text);
        std::mem::swap(&mut piece.before, &mut self.before);
        self.text.clear();
        self.before.clear();
        let window = piece.text.len().saturating_sub(WINDOW_BYTES);
        self.before.extend_from_slice(&piece.text[window..]);
        let waiting = match self.helpers.pack(piece) {
            Ok(coming) => Waiting::Coming(coming),
            Err(piece) => Waiting::Packed(self.packer.pack(piece, FlushCompress::Sync)?),
        };
        self.waiting.push_back(waiting);
        self.write_packed()
    }

    /// Writes the finished pieces. It waits only if too many are unfinished.
    fn write_packed(&mut self) -> io::Result<()> {
        let enough = 4 * self.helpers.most;
        while let Some(first) = self.waiting.pop_front() {
            let piece = match first {
                Waiting::Packed(piece) => piece,
                Waiting::Coming(coming) if self.waiting.len() >= enough => await_piece(&coming)?,
                Waiting::Coming(coming) => {
                    let Ok(piece) = coming.try_recv() else {
                        self.waiting.push_front(Waiting::Coming(coming));
                        return Ok(());
                    };
                    piece?
                }
            };
            self.write_piece(piece)?;
        }
        Ok(())
    }

    fn write_piece(&mut self, piece: Piece) -> io::Result<()> {
        self.checksum.combine(&piece.checksum);
        self.out.write_all(&piece.packed)?;
        self.spare.push(piece);
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        let last = Piece {
            text: std::mem::take(&mut self.text),
            before: std::mem::take(&mut self.before),
            ..Piece::default()
        };
        let last = self.packer.pack(last, FlushCompress::Finish)?;
        while let Some(waiting) = self.waiting.pop_front() {
            let piece = match waiting {
                Waiting::Packed(piece) => piece,
                Waiting::Coming(coming) => await_piece(&coming)?,
            };
            self.write_piece(piece)?;
        }
        self.write_piece(last)?;
        self.out.write_all(&self.checksum.sum().to_le_bytes())?;
        self.out.write_all(&self.checksum.amount().to_le_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Write for Writer<'_, '_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PIECE_BYTES - self.text.len();
        let taken = room.min(bytes.len());
        self.text.extend_from_slice(&bytes[..taken]);
        if self.text.len() == PIECE_BYTES {
            self.pass_on()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn await_piece(coming: &Receiver<io::Result<Piece>>) -> io::Result<Piece> {
    let gone = |_| io::Error::other("the thread that compresses has ended");
    coming.recv().map_err(gone)?
}

/// A piece of the text, and its compressed form.
#[derive(Default)]
struct Piece {
    text: Vec<u8>,
    /// The text that it may refer back to.
    before: Vec<u8>,
    packed: Vec<u8>,
    checksum: Crc,
}

/// Compresses pieces one after the other.
struct Packer(Compress);

impl Packer {
    fn new(effort: Effort) -> Self {
        let level = match effort {
            Effort::Fast => FAST,
            Effort::Small => SMALL,
        };
        Self(Compress::new(Compression::new(level), false))
    }

    /// Compresses a piece up to a whole byte. No piece may follow one with
    /// [`FlushCompress::Finish`].
    fn pack(&mut self, mut piece: Piece, flush: FlushCompress) -> io::Result<Piece> {
        let (text, packed) = (&piece.text, &mut piece.packed);
        piece.checksum.reset();
        piece.checksum.update(text);
        packed.clear();
        self.0.reset();
        if !piece.before.is_empty() {
            self.0.set_dictionary(&piece.before)?;
        }
        loop {
            packed.reserve(text.len() / 8 + 64);
            let rest = &text[self.0.total_in() as usize..];
            let status = self.0.compress_vec(rest, packed, flush)?;
            let is_done = match flush {
                FlushCompress::Finish => status == Status::StreamEnd,
                _ => packed.len() < packed.capacity(),
            };
            if is_done {
                return Ok(piece);
            }
        }
    }
}

/// The helper threads, started one by one as pieces come.
struct Helpers<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    most: usize,
    effort: Effort,
    started: usize,
    jobs: SyncSender<Job>,
    queue: Arc<Mutex<Receiver<Job>>>,
}

/// A piece, and the channel to return it on.
type Job = (Piece, SyncSender<io::Result<Piece>>);

impl<'scope, 'env> Helpers<'scope, 'env> {
    fn new(scope: &'scope Scope<'scope, 'env>, most: usize, effort: Effort) -> Self {
        let (jobs, queue) = sync_channel(most);
        let queue = Arc::new(Mutex::new(queue));
        Self {
            scope,
            most,
            effort,
            started: 0,
            jobs,
            queue,
        }
    }

    /// Hands a piece to a helper and returns the channel for the result, or returns the piece if
    /// all helpers are busy.
    fn pack(&mut self, piece: Piece) -> Result<Receiver<io::Result<Piece>>, Piece> {
        if self.started < self.most {
            self.start();
        }
        if self.started == 0 {
            return Err(piece);
        }
        let (answer, coming) = sync_channel(1);
        match self.jobs.try_send((piece, answer)) {
            Ok(()) => Ok(coming),
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => Err(job.0),
        }
    }

    fn start(&mut self) {
        let (queue, effort) = (Arc::clone(&self.queue), self.effort);
        let name = format!("mindprof-gzip-{}", self.started);
        let thread = thread::Builder::new().name(name);
        match thread.spawn_scoped(self.scope, move || help(&queue, effort)) {
            Ok(_) => self.started += 1,
            // The system refuses another thread: the existing ones have to suffice.
            Err(_) => self.most = self.started,
        }
    }
}

/// Compresses pieces until the queue is closed.
fn help(queue: &Mutex<Receiver<Job>>, effort: Effort) {
    let mut packer = Packer::new(effort);
    // The lock is held while waiting and released before compressing.
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok((piece, answer)) = next() {
        // The writer may have failed and stopped listening.
        let _ = answer.send(packer.pack(piece, FlushCompress::Sync));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::bufread::GzDecoder;
    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    fn packed(helpers: usize, parts: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let write = |out: &mut dyn Write| {
            for part in parts {
                out.write_all(part)?;
            }
            out.flush()
        };
        write_gzip_with(helpers, Effort::Small, &mut out, write).unwrap();
        out
    }

    /// Returns text with some repetition, like that of traces.
    fn text(bytes: usize) -> Vec<u8> {
        let numbers = (0_u64..).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
        numbers
            .flat_map(|number| format!("{{\"name\":\"aten::add\",\"ts\":{number}}}").into_bytes())
            .take(bytes)
            .collect()
    }

    fn unpacked(packed: &[u8]) -> Vec<u8> {
        // It stops after the first member.
        let mut decoder = GzDecoder::new(packed);
        let mut text = Vec::new();
        decoder.read_to_end(&mut text).unwrap();
        assert_eq!(decoder.into_inner(), b"");
        text
    }

    #[test]
    fn text_of_any_length_comes_back_from_one_member() {
        for bytes in [
            0,
            1,
            PIECE_BYTES - 1,
            PIECE_BYTES,
            PIECE_BYTES + 1,
            5_000_000,
        ] {
            let text = text(bytes);
            assert!(unpacked(&packed(2, &[&text])) == text, "{bytes}");
        }
    }

    #[test]
    fn the_bytes_do_not_depend_on_the_number_of_threads() {
        let text = text(7 * PIECE_BYTES + 123);
        let alone = packed(0, &[&text]);
        for helpers in 1..4 {
            assert!(packed(helpers, &[&text]) == alone, "{helpers}");
        }
    }

    #[test]
    fn what_does_not_compress_comes_back_too() {
        let mut state = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(3 * PIECE_BYTES)
        .collect();
        assert!(unpacked(&packed(2, &[&noise])) == noise);
    }

    #[test]
    fn a_full_disk_is_an_error_and_ends_the_helpers() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self
                    .0
                    .checked_sub(bytes.len())
                    .ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let text = text(PIECE_BYTES);
        let endless = |out: &mut dyn Write| -> Result<(), Error> {
            loop {
                out.write_all(&text)?;
            }
        };
        let result = write_gzip_with(3, Effort::Fast, Full(1 << 20), endless);
        assert!(
            matches!(result, Err(Error::Io(error)) if error.kind() == io::ErrorKind::StorageFull)
        );
    }

    #[test]
    fn a_panic_of_who_writes_ends_the_helpers() {
        let text = text(6 * PIECE_BYTES);
        let write = |out: &mut dyn Write| -> Result<(), Error> {
            out.write_all(&text)?;
            panic!("on purpose");
        };
        let result =
            std::panic::catch_unwind(|| write_gzip_with(2, Effort::Fast, io::sink(), write));
        assert!(result.is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn it_does_not_matter_how_text_is_handed_over(
            cuts in prop::collection::vec(0..3 * PIECE_BYTES, 0..6),
        ) {
            let text = text(3 * PIECE_BYTES);
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut parts = Vec::new();
            let mut rest = &text[..];
            for (index, cut) in cuts.iter().enumerate() {
                let from = if index == 0 { 0 } else { cuts[index - 1] };
                let (part, after) = rest.split_at(cut - from);
                parts.push(part);
                rest = after;
            }
            parts.push(rest);
            prop_assert!(packed(1, &parts) == packed(0, &[&text]));
        }
    }
}
