//! The decompressed bytes of a file in a moving window, so that memory stays bounded.
//!
//! Files are read and not mapped, although reading costs a twentieth of the time of a trace: mapped
//! pages count as memory of the process until unsafe calls release them, and a file that shrinks
//! meanwhile would end the process.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Chain, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::zstd::ZstdFrames;
use super::{Cursor, Scan, Stop};
use crate::error::{Error, Result};
use crate::files::Compression;
use crate::read_options::{Progress, ReadOptions, UNPACKED_BYTES, UNPACKED_TIMES};

/// The size of a read. It fits into the second-level cache.
const CHUNK_BYTES: usize = 256 << 10;
/// The largest length of one value, such as an event.
const LONGEST_VALUE: usize = 64 << 20;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// A moving window over the decompressed bytes of a file.
///
/// It detects and removes gzip and zstd compression, enforces the size limits and reports progress.
/// Readers scan the window and drop what they have passed.
pub(crate) struct Source<'a> {
    input: Box<dyn Read + 'a>,
    compression: Option<Compression>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    is_over: bool,
    is_damaged: bool,
    /// The number of bytes dropped, and their position in lines while lines are counted.
    passed: u64,
    place: Place,
    counts_lines: bool,
    done: Rc<Cell<u64>>,
    total: u64,
    progress: Option<Progress<'a>>,
    max_bytes: Option<u64>,
}

/// A fault in the text, and its offset in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) stop: Stop,
}

/// A position in a text; both numbers count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    /// Returns the position of the byte before, or this one at the start of a line.
    const fn before(self) -> Self {
        let column = if self.column > 1 { self.column - 1 } else { 1 };
        Self { column, ..self }
    }

    fn after(self, bytes: &[u8]) -> Self {
        let lines = memchr::memchr_iter(b'\n', bytes).count();
        match memchr::memrchr(b'\n', bytes) {
            Some(last) => Self {
                line: self.line + lines,
                column: bytes.len() - last,
            },
            None => Self {
                line: self.line,
                column: self.column + bytes.len(),
            },
        }
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Source")
            .field("compression", &self.compression)
            .field("passed", &self.passed)
            .finish_non_exhaustive()
    }
}

impl<'a> Source<'a> {
    /// Opens `file`, which has `total` bytes, or zero if the size is unknown.
    ///
    /// # Errors
    /// If the first bytes cannot be read, or there are none.
    pub(crate) fn open(
        file: impl Read + 'a,
        total: u64,
        options: &ReadOptions<'a>,
    ) -> Result<Self> {
        let done = Rc::new(Cell::new(0));
        let mut file = Counted {
            file,
            done: Rc::clone(&done),
        };
        let mut first = Vec::new();
        file.by_ref()
            .take(ZSTD_MAGIC.len() as u64)
            .read_to_end(&mut first)?;
        if first.is_empty() {
            return Err(Error::Empty);
        }
        let compression = compression_of(&first);
        let whole = io::Cursor::new(first).chain(file);
        Ok(Self {
            input: unpacked(whole, compression),
            compression,
            buffer: Vec::new(),
            begin: 0,
            end: 0,
            is_over: false,
            is_damaged: false,
            passed: 0,
            place: Place { line: 1, column: 1 },
            counts_lines: true,
            done,
            total,
            progress: options.progress,
            max_bytes: options.max_bytes,
        })
    }

    /// Returns the bytes that were read but not passed.
    pub(crate) fn window(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Drops the first bytes of the window.
    pub(crate) fn pass(&mut self, bytes: usize) {
        if self.counts_lines {
            self.place = self.place.after(&self.buffer[self.begin..][..bytes]);
        }
        self.begin += bytes;
        self.passed += bytes as u64;
    }

    /// Extends the window to at least `bytes`, unless the input is shorter.
    ///
    /// # Errors
    /// As [`Self::more`].
    pub(crate) fn fill(&mut self, bytes: usize) -> Result<()> {
        while self.window().len() < bytes && self.more()? {}
        Ok(())
    }

    /// Passes a byte order mark at the start of the text.
    pub(crate) fn pass_mark(&mut self) -> Result<()> {
        self.fill(BYTE_ORDER_MARK.len())?;
        if self.window().starts_with(&BYTE_ORDER_MARK) {
            self.pass(BYTE_ORDER_MARK.len());
            self.place.column = 1;
        }
        Ok(())
    }

    /// Extends the window. Returns whether there was more text.
    ///
    /// # Errors
    /// If the file cannot be read, or a single value is too long for a trace.
    pub(crate) fn more(&mut self) -> Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        self.make_room()?;
        let read = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let read = match (read, self.compression) {
            (Ok(read), _) => read,
            (Err(error), None) => return Err(error.into()),
            (Err(_), Some(compression)) => {
                self.is_damaged = true;
                if self.passed == 0 && self.window().is_empty() {
                    return Err(Error::Compressed(compression));
                }
                0
            }
        };
        self.end += read;
        self.is_over = read == 0;
        self.check_limit()?;
        if let Some(progress) = self.progress {
            progress(self.done.get(), self.total);
        }
        Ok(read > 0)
    }

    /// Refuses text that exceeds the limit of the read or, for a compressed file, the size of any
    /// trace.
    fn check_limit(&self) -> Result<()> {
        let of_packed = || {
            let packed = self.compression.map(|_| self.done.get())?;
            Some(UNPACKED_BYTES.max(packed.saturating_mul(UNPACKED_TIMES)))
        };
        let read = self.passed + (self.end - self.begin) as u64;
        match self.max_bytes.or_else(of_packed) {
            Some(limit) if read > limit => Err(Error::TooMuch { limit }),
            Some(_) | None => Ok(()),
        }
    }

    /// Passes white space, however long, and returns the byte after it.
    ///
    /// # Errors
    /// Like [`Self::more`].
    pub(crate) fn peek(&mut self) -> Result<Option<u8>> {
        loop {
            let mut cursor = Cursor::new(self.window());
            let found = cursor.peek().ok();
            let at = cursor.at();
            self.pass(at);
            if found.is_some() || !self.more()? {
                return Ok(found);
            }
        }
    }

    /// Runs `scan` on the window, extended until it suffices, and passes the scanned text.
    ///
    /// The inner error is a fault of the text: it ends too early or is not as expected.
    ///
    /// # Errors
    /// Like [`Self::more`].
    pub(crate) fn scan<T>(
        &mut self,
        mut scan: impl FnMut(&mut Cursor<'_>) -> Scan<T>,
    ) -> Result<std::result::Result<T, Fault>> {
        self.peek()?;
        loop {
            let mut cursor = Cursor::new(self.window());
            match scan(&mut cursor) {
                Ok(found) => {
                    let at = cursor.at();
                    self.pass(at);
                    return Ok(Ok(found));
                }
                Err(Stop::More) => {
                    if !self.more()? {
                        let at = self.window().len();
                        let stop = Stop::More;
                        return Ok(Err(Fault { at, stop }));
                    }
                }
                Err(stop) => {
                    let at = cursor.at();
                    return Ok(Err(Fault { at, stop }));
                }
            }
        }
    }

    /// Passes everything before the next `text`. Returns whether it was found.
    ///
    /// # Errors
    /// Like [`Self::more`].
    pub(crate) fn seek(&mut self, text: &[u8]) -> Result<bool> {
        loop {
            if let Some(found) = memchr::memmem::find(self.window(), text) {
                self.pass(found);
                return Ok(true);
            }
            // The window may end within the text.
            self.pass(self.window().len().saturating_sub(text.len() - 1));
            if !self.more()? {
                return Ok(false);
            }
        }
    }

    /// Returns the fraction of the file that was read, if its size is known.
    pub(crate) fn part_read(&self) -> Option<f64> {
        (self.total > 0).then(|| self.done.get() as f64 / self.total as f64)
    }

    /// Stops counting lines, once no error can need them.
    pub(crate) const fn forget_lines(&mut self) {
        self.counts_lines = false;
    }

    /// Returns an error if the window starts with the magic number of a container.
    pub(crate) fn packed(&self) -> Option<Error> {
        let window = self.window();
        let found = match (compression_of(window), self.compression) {
            (Some(Compression::Gzip), Some(Compression::Gzip)) => "gzip data in gzip data",
            (Some(_), _) => "compressed data in compressed data",
            (None, _) if window.starts_with(ZIP_MAGIC) => "a zip archive",
            (None, _) => return None,
        };
        Some(Error::Packed { found })
    }

    /// Returns the error for a fault in the text.
    pub(crate) fn error(&self, fault: Fault) -> Error {
        match fault.stop {
            Stop::More => self.cut_off(),
            Stop::Bad(what) => self.not_json(fault.at, what),
            Stop::Stranger(what) => self.not_a_trace(fault.at, what),
        }
    }

    /// Returns the offset of the window in the decompressed bytes.
    pub(crate) const fn offset(&self) -> u64 {
        self.passed
    }

    /// Returns the error for compressed data that is damaged or cut off, if it is.
    pub(crate) fn damage(&self) -> Option<Error> {
        let compression = self.compression.filter(|_| self.is_damaged)?;
        Some(Error::Compressed(compression))
    }

    /// Returns the error for text that ends too early.
    pub(crate) fn cut_off(&self) -> Error {
        if let Some(error) = self.damage() {
            return error;
        }
        let Place { line, column } = self.place(self.window().len()).before();
        Error::Truncated { line, column }
    }

    /// Returns the error for text that is not JSON at `offset` of the window.
    pub(crate) fn not_json(&self, offset: usize, what: &str) -> Error {
        let Place { line, column } = self.place(offset);
        let what = what.into();
        Error::NotJson { line, column, what }
    }

    /// Returns the error for JSON that is not a trace at `offset` of the window.
    pub(crate) fn not_a_trace(&self, offset: usize, what: &str) -> Error {
        let Place { line, column } = self.place(offset);
        let what = what.into();
        Error::NotATrace { line, column, what }
    }

    /// Returns the error for JSON that lacks something in the text already passed.
    pub(crate) fn lacks(&self, what: &str) -> Error {
        let Place { line, column } = self.place.before();
        let what = what.into();
        Error::NotATrace { line, column, what }
    }

    fn place(&self, offset: usize) -> Place {
        self.place.after(&self.window()[..offset])
    }

    /// Returns whether the compressed data was damaged or cut off.
    pub(crate) const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    fn make_room(&mut self) -> Result<()> {
        let length = self.end - self.begin;
        if length > LONGEST_VALUE {
            return Err(Error::TooLong {
                offset: self.passed,
                limit: LONGEST_VALUE as u64,
            });
        }
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, length);
        // A value that does not fit is scanned again from its start; doubling the buffer keeps that
        // linear.
        let room = (2 * length).max(length + CHUNK_BYTES);
        if self.buffer.len() < length + CHUNK_BYTES {
            self.buffer.resize(room, 0);
        }
        Ok(())
    }
}

fn compression_of(first: &[u8]) -> Option<Compression> {
    if first.starts_with(&GZIP_MAGIC) {
        return Some(Compression::Gzip);
    }
    first.starts_with(&ZSTD_MAGIC).then_some(Compression::Zstd)
}

type Whole<F> = Chain<io::Cursor<Vec<u8>>, Counted<F>>;

fn unpacked<'a, F: Read + 'a>(
    whole: Whole<F>,
    compression: Option<Compression>,
) -> Box<dyn Read + 'a> {
    let buffered = |whole| BufReader::with_capacity(64 << 10, whole);
    match compression {
        None => Box::new(whole),
        Some(Compression::Gzip) => Box::new(MultiGzDecoder::new(buffered(whole))),
        Some(Compression::Zstd) => Box::new(ZstdFrames::new(buffered(whole))),
    }
}

/// A file that counts the bytes read from it.
struct Counted<F> {
    file: F,
    done: Rc<Cell<u64>>,
}

impl<F: Read> Read for Counted<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.done.set(self.done.get() + read as u64);
        Ok(read)
    }
}
