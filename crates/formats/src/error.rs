//! The errors of writing rows, columns and stacks.

use std::io;
use std::path::{Path, PathBuf};

use mindprof_trace::FileError;

/// The reasons why writing or naming a format fails.
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
    #[error("{}", mindprof_trace::io_text(.0))]
    Io(#[from] io::Error),
    /// A trace could not be read or written.
    #[error(transparent)]
    Trace(#[from] mindprof_trace::Error),
    /// A file is no summary of ranks.
    #[error(transparent)]
    Ranks(#[from] mindprof_ranks::Error),
    /// A trace has no events.
    #[error("the trace has no events")]
    NoEvents,
    /// A trace does not tell its rank.
    #[error("neither the trace nor the name of the file tells the rank")]
    NoRank,
    /// There is no such sort key.
    #[error("unknown sort key `{name}`, expected one of {expected}")]
    UnknownSortKey {
        /// The requested key.
        name: String,
        /// The keys that exist.
        expected: String,
    },
    /// Stacks cannot be weighted by this metric.
    #[error("unknown metric `{name}`, expected one of {}", crate::folded::STACK_METRICS.join(", "))]
    UnknownStackMetric {
        /// The requested metric.
        name: String,
    },
    /// The profile has no time to draw.
    #[error("the profile has no events with self time")]
    NothingSpent,
    /// There is no such kind of device.
    #[error("Expected one of {expected} device type at start of device string: {name}")]
    UnknownDeviceKind {
        /// The requested device.
        name: String,
        /// The kinds that exist.
        expected: String,
    },
    /// The index after the kind of a device is not a number.
    #[error("Invalid device string: '{name}'")]
    BadDeviceNumber {
        /// The requested device.
        name: String,
    },
    /// The device string is empty.
    #[error("Device string must not be empty")]
    NoDeviceName,
}

impl Error {
    /// Returns the operating system's error behind this one, if there is one.
    pub fn io_cause(&self) -> Option<&io::Error> {
        match self {
            Self::File { source, .. } => source.io_cause(),
            Self::Io(source) => Some(source),
            Self::Trace(source) => source.io_cause(),
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

/// The result of writing or naming a format.
pub type Result<T> = std::result::Result<T, Error>;
