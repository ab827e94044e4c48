//! What can go wrong between bytes and profiles.

use std::io;
use std::path::{Path, PathBuf};

use crate::compression::Compression;

/// The reasons for which reading, writing or parsing fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written for the reason that follows.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// The operating system refused.
    #[error("{}", describe_io(.0))]
    Io(#[from] io::Error),
    /// There is nothing to read.
    #[error("the file is empty, expected a Chrome trace")]
    Empty,
    /// The compressed bytes do not give back what was compressed.
    #[error("the {0} data is damaged or cut off")]
    Compressed(Compression),
    /// One value of the JSON is longer than any that a trace has.
    #[error("the value at byte {offset} is longer than {limit} bytes, expected a Chrome trace")]
    TooLong {
        /// Where it begins in the unpacked text.
        offset: u64,
        /// How long a value may be.
        limit: u64,
    },
    /// There is more text than may be read.
    #[error("more than {limit} bytes of text, expected at most that; `max_bytes` allows more")]
    TooMuch {
        /// How many bytes may be read, unpacked.
        limit: u64,
    },
    /// What should be a text is packed in a way that is not read.
    #[error("found {found}, expected a Chrome trace, plain or compressed once by gzip or zstd")]
    Packed {
        /// What it is.
        found: &'static str,
    },
    /// The JSON stops before it is complete.
    #[error("the JSON ends too early, at line {line} column {column}: the file was cut off")]
    Truncated {
        /// The line of the end, counted from one.
        line: usize,
        /// The column of the end, counted from one.
        column: usize,
    },
    /// The bytes are not JSON.
    #[error("not valid JSON at line {line} column {column}: {what}")]
    NotJson {
        /// The line of the fault, counted from one.
        line: usize,
        /// The column of the fault, counted from one.
        column: usize,
        /// What was expected there.
        what: String,
    },
    /// The bytes are JSON of another kind.
    #[error("no Chrome trace at line {line} column {column}: {what}")]
    NotATrace {
        /// The line of the fault, counted from one.
        line: usize,
        /// The column of the fault, counted from one.
        column: usize,
        /// What was expected and what was found.
        what: String,
    },
    /// The parts of the trace do not make a profile.
    #[error("the trace is inconsistent: {0}")]
    Model(#[from] mindprof_model::Error),
    /// Rows cannot be sorted by this.
    #[error("unknown sort key `{name}`, expected one of {expected}")]
    UnknownSortKey {
        /// The key that was asked for.
        name: String,
        /// The keys there are.
        expected: String,
    },
    /// Not even an empty trace is as small as was asked for.
    #[error("at least {least} bytes are needed, expected at most {max_bytes}")]
    TooLarge {
        /// How many bytes were allowed.
        max_bytes: u64,
        /// How many bytes a trace without events has.
        least: u64,
    },
    /// Stacks cannot be weighed by this.
    #[error("unknown metric `{name}`, expected one of {}", crate::folded::STACK_METRICS.join(", "))]
    UnknownStackMetric {
        /// The metric that was asked for.
        name: String,
    },
    /// A picture of times was asked for where there are none.
    #[error("nothing was spent, expected at least one event with a time of its own")]
    NothingSpent,
    /// There is no such kind of device.
    #[error("Expected one of {expected} device type at start of device string: {name}")]
    UnknownDeviceKind {
        /// The device that was asked for.
        name: String,
        /// The kinds there are.
        expected: String,
    },
    /// What follows the kind of a device is not a number.
    #[error("Invalid device string: '{name}'")]
    BadDeviceNumber {
        /// The device that was asked for.
        name: String,
    },
    /// A device without a name.
    #[error("Device string must not be empty")]
    NoDeviceName,
}

impl Error {
    /// Says which file the error is about.
    #[must_use]
    pub fn at(self, path: &Path) -> Self {
        Self::File {
            path: path.to_path_buf(),
            source: Box::new(self),
        }
    }
}

/// The result of reading, writing or parsing.
pub type Result<T> = std::result::Result<T, Error>;

/// Says it without the system's error number where the kind says it all.
fn describe_io(error: &io::Error) -> String {
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
