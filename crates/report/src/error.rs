//! The errors of laying out text, pictures and pages.

use std::io;
use std::path::Path;

use mindprof_trace::FileError;

/// The reasons why a report cannot be written.
///
/// Most of them come from `mindprof_formats`, which reads and writes the data behind a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Rows have device times, but the device is not known.
    #[error("use_device is None, but there is device performance data.")]
    UnknownDevice,
    /// There is no such unit of time.
    #[error("unknown time unit `{name}`, expected one of s, ms, us")]
    UnknownTimeUnit {
        /// The requested unit.
        name: String,
    },
    /// The times of a profile are larger than a page can count.
    #[error("events span {days} days, and pages count at most 104 days to the nanosecond")]
    TooLong {
        /// The time from the first event to the last.
        days: u64,
    },
    /// The data behind the report could not be written, or there is none.
    #[error(transparent)]
    Format(#[from] mindprof_formats::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Format(error.into())
    }
}

impl From<mindprof_trace::Error> for Error {
    fn from(error: mindprof_trace::Error) -> Self {
        Self::Format(error.into())
    }
}

impl FileError for Error {
    fn at(self, path: &Path) -> Self {
        match self {
            Self::Format(error) => Self::Format(error.at(path)),
            Self::UnknownDevice | Self::UnknownTimeUnit { .. } | Self::TooLong { .. } => self,
        }
    }
}

/// The result of writing a report.
pub type Result<T> = std::result::Result<T, Error>;
