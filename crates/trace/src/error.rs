//! The errors of reading and writing trace files.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::{Compression, FileError};

/// The reasons why reading or writing a trace fails.
///
/// Readers and writers return the bare cause; the functions that open a file wrap it in
/// [`Error::File`], so that every message about a file names it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error that concerns one file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<Error>,
    },
    /// The operating system reported an error.
    #[error("{}", io_text(.0))]
    Io(#[from] io::Error),
    /// The input has no bytes.
    #[error("the file is empty, expected a Chrome trace or a memory snapshot")]
    Empty,
    /// The compressed data cannot be decompressed.
    #[error("the {0} data is damaged or cut off")]
    Compressed(Compression),
    /// A single JSON value is longer than any value of a trace.
    #[error("the value at byte {offset} is longer than {limit} bytes, expected a Chrome trace")]
    TooLong {
        /// The offset of the value in the decompressed text.
        offset: u64,
        /// The largest length that is accepted.
        limit: u64,
    },
    /// The decompressed text exceeds the limit of the read.
    #[error("more than {limit} bytes of text: raise `max_bytes` to read all of it")]
    TooMuch {
        /// The largest number of decompressed bytes that is accepted.
        limit: u64,
    },
    /// The input is packed in a container that is not supported.
    #[error("found {found}, expected a Chrome trace, plain or compressed once by gzip or zstd")]
    Packed {
        /// A description of the container.
        found: &'static str,
    },
    /// The JSON ends before it is complete.
    #[error("the JSON ends too early, at line {line} column {column}: the file was cut off")]
    Truncated {
        /// The line of the end, counted from one.
        line: usize,
        /// The column of the end, counted from one.
        column: usize,
    },
    /// The input is not JSON.
    #[error("not valid JSON at line {line} column {column}: {what}")]
    NotJson {
        /// The line of the fault, counted from one.
        line: usize,
        /// The column of the fault, counted from one.
        column: usize,
        /// A description of what was expected there.
        what: String,
    },
    /// The input is JSON, but not a trace.
    #[error("not a Chrome trace at line {line} column {column}: {what}")]
    NotATrace {
        /// The line of the fault, counted from one.
        line: usize,
        /// The column of the fault, counted from one.
        column: usize,
        /// A description of what was expected and what was found.
        what: String,
    },
    /// The parts of the trace contradict each other.
    #[error("the trace is inconsistent: {0}")]
    Model(#[from] mindprof_model::Error),
    /// The input is a database that cannot be read.
    #[error("the database is damaged or cut off: {what}")]
    DatabaseDamaged {
        /// The words of the database library.
        what: String,
    },
    /// Another program writes the database.
    #[error("the database is locked: wait until the program that writes it has ended, or copy it")]
    DatabaseLocked,
    /// The database cannot be opened, such as one with a log beside it in a read-only folder.
    #[error("the database cannot be opened: {what}")]
    DatabaseUnopened {
        /// The words of the database library.
        what: String,
    },
    /// The input is a database, but not one of a profiler.
    #[error(
        "not a database of an Ascend profiler: expected the table TASK, PYTORCH_API or CANN_API, \
         found {found}"
    )]
    NotAProfile {
        /// The tables that it has.
        found: String,
    },
    /// A CSV file of an Ascend profiler has sums, from which no profile can be made.
    #[error("{file} has sums without times: read the folder that it is in, or trace_view.json")]
    SumsWithoutTimes {
        /// The usual name of the file.
        file: &'static str,
    },
    /// A CSV file lacks a column without which its rows say nothing.
    #[error("{file} lacks the column `{column}`: read {instead}")]
    MissingColumn {
        /// The usual name of the file.
        file: &'static str,
        /// The column.
        column: &'static str,
        /// The file to read instead.
        instead: &'static str,
    },
    /// A CSV file has amounts in a unit that is not known.
    #[error("unknown unit of the column `{column}`: expected B, KB, MB or GB in parentheses")]
    UnknownUnit {
        /// The name of the column.
        column: String,
    },
    /// A CSV file has blocks, but not the curve that they are parts of.
    #[error(
        "operator_memory.csv has blocks of memory without the totals: read memory_record.csv, or \
         the folder that both are in"
    )]
    BlocksWithoutCurve,
    /// A CSV file has names of columns and nothing else.
    #[error("the table has no rows")]
    NoRows,
    /// A CSV file is damaged.
    #[error("not a valid table: {what}")]
    BadTable {
        /// The words of the library.
        what: String,
    },
    /// A folder has several databases, each of which is a profile.
    #[error("several profiles in the folder, expected one: read one of {found}")]
    SeveralProfiles {
        /// Their names.
        found: String,
    },
    /// A folder has no profile.
    #[error(
        "no profile in the folder, expected a database of an Ascend profiler, trace_view.json or \
         kernel_details.csv"
    )]
    NoProfile,
    /// The input is a pickle, where a trace was expected.
    #[error(
        "a pickle, expected a trace: `mindprof memory FILE` reads memory snapshots of torch's allocator"
    )]
    Pickle,
    /// The input is a pickle of a protocol that is not read.
    #[error(
        "a pickle of protocol {protocol}, expected 2 to 5: load it in Python and write it with \
         `pickle.dump(snapshot, file, protocol=4)`"
    )]
    PickleProtocol {
        /// The number of the protocol, or two of them if the file does not tell.
        protocol: String,
    },
    /// The input is neither a trace nor a memory snapshot.
    #[error("neither a trace nor a memory snapshot: the file begins with {head}")]
    NotMemory {
        /// Its first bytes, in hexadecimal digits.
        head: String,
    },
    /// A pickle asks to import, call or build something, which would run code of its author.
    #[error(
        "the pickle would run code: {what} at byte {offset}; a memory snapshot holds only data"
    )]
    PickledCode {
        /// The operation, and the name that it imports.
        what: String,
        /// The offset of the operation in the decompressed data.
        offset: u64,
    },
    /// A pickle ends before it is complete.
    #[error("the pickle ends too early, at byte {offset}: the file was cut off")]
    PickleTruncated {
        /// The offset of the operation that is not complete.
        offset: u64,
    },
    /// The input is not a pickle of the supported kind.
    #[error("not a valid pickle: {what} at byte {offset}, so it is damaged there or before")]
    BadPickle {
        /// A description of what was expected and what was found.
        what: String,
        /// The offset of the operation in the decompressed data.
        offset: u64,
    },
    /// A pickle takes more memory than any snapshot of its size.
    #[error("the pickle takes more than {limit} bytes of memory after {offset} bytes of the file")]
    PickleTooLarge {
        /// The largest number of bytes of memory that is accepted.
        limit: u64,
        /// The offset of the operation in the decompressed data.
        offset: u64,
    },
    /// The input is a pickle, but not a memory snapshot.
    #[error("not a memory snapshot of torch's allocator: {what}")]
    NotASnapshot {
        /// A description of what was expected and what was found.
        what: String,
    },
    /// Not even a trace without events fits into the requested size.
    #[error("a trace without events has {least} bytes, more than the allowed {max_bytes}")]
    TooLarge {
        /// The largest number of bytes allowed.
        max_bytes: u64,
        /// The size of a trace without events.
        least: u64,
    },
}

impl Error {
    /// Returns the operating system's error behind this one, if there is one.
    pub fn io_cause(&self) -> Option<&io::Error> {
        match self {
            Self::File { source, .. } => source.io_cause(),
            Self::Io(source) => Some(source),
            _ => None,
        }
    }
}

impl FileError for Error {
    fn at(self, path: &Path) -> Self {
        Self::File {
            path: path.to_path_buf(),
            source: Box::new(self),
        }
    }
}

/// The result of reading or writing a trace.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Describes an error of the operating system, without its number if the kind is enough.
pub fn io_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "is a directory, expected a file".into(),
        io::ErrorKind::StorageFull => "no space left on device".into(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        io::ErrorKind::NotADirectory => "a part of the path is a file, expected a directory".into(),
        _ => error.to_string(),
    }
}
