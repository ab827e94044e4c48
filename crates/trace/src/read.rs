//! Reads traces from files, bytes and streams, whatever their format and compression.
//!
//! The content decides which reader of [`crate::readers`] takes the input; file names do not
//! matter.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use mindprof_model::{MemorySnapshot, Profile};

use crate::ascend::{DATABASE_MAGIC, read_database_file, read_folder};
use crate::error::{Error, Result};
use crate::files::FileError;
use crate::read_options::ReadOptions;
use crate::readers::reader_of;
use crate::reading::{PartReading, Reading};
use crate::scan::Source;
use crate::snapshot::{is_pickle, read_snapshot_source, unread_pickle};

/// The number of bytes that readers see when they are asked whether they recognize an input.
const HEAD_BYTES: usize = 256;

/// Reads a trace file, which may be compressed.
///
/// # Errors
/// If the file cannot be read or is not a trace. The error names the file.
pub fn read_trace_file(path: &Path) -> Result<Profile> {
    Ok(read_trace_file_with(path, &ReadOptions::default())?.profile)
}

/// Reads a trace file with options, and returns the repairs along with the profile.
///
/// # Errors
/// If the file cannot be read or is not a trace. The error names the file.
pub fn read_trace_file_with(path: &Path, options: &ReadOptions<'_>) -> Result<Reading> {
    let read = || {
        if path.is_dir() {
            return read_folder(path, options, read_part_of_file)?.into_reading();
        }
        read_part_of_file(path, options)?.into_reading()
    };
    read().map_err(|error: Error| error.at(path))
}

/// Reads one file into a part.
fn read_part_of_file(path: &Path, options: &ReadOptions<'_>) -> Result<PartReading> {
    let mut file = File::open(path)?;
    let total = file.metadata()?.len();
    if begins_with(&mut file, DATABASE_MAGIC)? {
        return read_database_file(path, options);
    }
    read_part(file, total, options)
}

/// Returns whether a file begins with these bytes, and goes back to its begin.
fn begins_with(file: &mut File, magic: &[u8]) -> Result<bool> {
    let mut head = Vec::with_capacity(magic.len());
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    file.by_ref()
        .take(magic.len() as u64)
        .read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head == magic)
}

/// Reads a trace from a stream of unknown length, such as a pipe.
///
/// # Errors
/// If the stream cannot be read or is not a trace.
pub fn read_trace_from(input: impl Read, options: &ReadOptions<'_>) -> Result<Reading> {
    read_from(input, 0, options)
}

/// Reads a trace from bytes, which may be compressed.
///
/// # Errors
/// If the bytes are not a trace. The error states where that shows.
pub fn read_trace(bytes: &[u8]) -> Result<Profile> {
    Ok(read_trace_with(bytes, &ReadOptions::default())?.profile)
}

/// Reads a trace from bytes with options, and returns the repairs along with the profile.
///
/// # Errors
/// If the bytes are not a trace. The error states where that shows.
pub fn read_trace_with(bytes: &[u8], options: &ReadOptions<'_>) -> Result<Reading> {
    read_from(bytes, bytes.len() as u64, options)
}

/// An open input that is a trace or, by its first bytes, something else.
///
/// The first bytes are those after decompression, and asking for them consumes nothing, so that a
/// pipe can be told apart too.
#[derive(Debug)]
pub struct Input<'a> {
    source: Source<'a>,
    options: ReadOptions<'a>,
}

impl<'a> Input<'a> {
    /// Opens an input that has `total` bytes, or zero if the size is unknown.
    ///
    /// # Errors
    /// If the first bytes cannot be read, or there are none.
    pub fn open(input: impl Read + 'a, total: u64, options: &ReadOptions<'a>) -> Result<Self> {
        Ok(Self {
            source: Source::open(input, total, options)?,
            options: *options,
        })
    }

    /// Returns whether the decompressed input begins with these bytes.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn begins_with(&mut self, magic: &[u8]) -> Result<bool> {
        self.source.fill(magic.len())?;
        Ok(self.source.window().starts_with(magic))
    }

    /// Returns all bytes, decompressed.
    ///
    /// # Errors
    /// If they cannot be read, are damaged, or exceed the limit.
    pub fn into_bytes(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.source.forget_lines();
        loop {
            let window = self.source.window();
            let read = window.len();
            bytes.extend_from_slice(window);
            self.source.pass(read);
            if !self.source.more()? {
                return self.source.damage().map_or(Ok(bytes), Err);
            }
        }
    }

    /// Reads the input as a trace.
    ///
    /// # Errors
    /// If it cannot be read or is not a trace.
    pub fn into_trace(self) -> Result<Reading> {
        read_source(self.source, &self.options)?.into_reading()
    }
}

/// A file about memory: a trace with memory records, or a snapshot of an allocator.
#[derive(Debug)]
pub enum MemoryInput {
    /// A trace.
    Trace(Box<Reading>),
    /// A snapshot.
    Snapshot(Box<MemorySnapshot>),
}

/// Reads a trace, or the memory snapshot of a caching allocator. The content decides which.
///
/// # Errors
/// If the file cannot be read or is neither. The error names the file.
pub fn read_memory_file(path: &Path, options: &ReadOptions<'_>) -> Result<MemoryInput> {
    let read = || {
        let metadata = path.metadata()?;
        if metadata.is_file() && !begins_with(&mut File::open(path)?, DATABASE_MAGIC)? {
            return read_memory(File::open(path)?, metadata.len(), options);
        }
        let reading = read_trace_file_with(path, options)?;
        Ok(MemoryInput::Trace(Box::new(reading)))
    };
    read().map_err(|error: Error| match error {
        error @ Error::File { .. } => error,
        error => error.at(path),
    })
}

/// Reads a trace or a memory snapshot from a stream of unknown length, such as a pipe.
///
/// # Errors
/// If the stream cannot be read or is neither.
pub fn read_memory_from(input: impl Read, options: &ReadOptions<'_>) -> Result<MemoryInput> {
    read_memory(input, 0, options)
}

/// Reads the memory snapshot of a caching allocator from bytes, which may be compressed.
///
/// # Errors
/// If the bytes are not a snapshot. A pickle that would run code is refused.
pub fn read_snapshot(bytes: &[u8]) -> Result<MemorySnapshot> {
    let source = Source::open(bytes, bytes.len() as u64, &ReadOptions::default())?;
    read_snapshot_source(source)
}

fn read_memory(input: impl Read, total: u64, options: &ReadOptions<'_>) -> Result<MemoryInput> {
    let mut source = Source::open(input, total, options)?;
    source.fill(HEAD_BYTES)?;
    if is_pickle(source.window()) {
        let snapshot = read_snapshot_source(source)?;
        return Ok(MemoryInput::Snapshot(Box::new(snapshot)));
    }
    let head = source.window();
    let head = head[..head.len().min(4)].to_vec();
    let read = read_source(source, options).map_err(|error| match error {
        Error::NotJson {
            line: 1, column: 1, ..
        } => {
            let head: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
            let head = head.join(" ");
            Error::NotMemory { head }
        }
        error => error,
    });
    let reading = read?.into_reading()?;
    Ok(MemoryInput::Trace(Box::new(reading)))
}

/// Reads a trace from `input`, which has `total` bytes, or zero if the size is unknown.
fn read_from(input: impl Read, total: u64, options: &ReadOptions<'_>) -> Result<Reading> {
    read_part(input, total, options)?.into_reading()
}

fn read_part(input: impl Read, total: u64, options: &ReadOptions<'_>) -> Result<PartReading> {
    read_source(Source::open(input, total, options)?, options)
}

fn read_source(mut source: Source<'_>, options: &ReadOptions<'_>) -> Result<PartReading> {
    source.fill(HEAD_BYTES)?;
    if is_pickle(source.window()) {
        return Err(Error::Pickle);
    }
    if let Some(protocol) = unread_pickle(source.window()) {
        return Err(Error::PickleProtocol { protocol });
    }
    // The bytes are offered as they are first, because a binary format may begin with a byte that
    // is white space in text.
    if let Some(reader) = reader_of(source.window()) {
        return reader.read(source, options);
    }
    source.pass_mark()?;
    if source.peek()?.is_none() {
        return Err(Error::Empty);
    }
    match reader_of(source.window()) {
        Some(reader) => reader.read(source, options),
        None => Err(unreadable(&source)),
    }
}

/// Explains why no reader takes the input.
fn unreadable(source: &Source<'_>) -> Error {
    const WORDS: [&[u8]; 3] = [b"true", b"false", b"null"];
    if let Some(error) = source.packed() {
        return error;
    }
    let window = source.window();
    let is_json = matches!(window.first(), Some(b'"' | b'-' | b'0'..=b'9'))
        || WORDS.iter().any(|word| window.starts_with(word));
    if is_json {
        let what = "expected an object with \"traceEvents\" or an array of events";
        return source.not_a_trace(0, what);
    }
    source.not_json(0, "expected value")
}
