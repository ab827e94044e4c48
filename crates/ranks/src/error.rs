//! Errors in reading summaries.

/// The reasons why bytes are no summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not begin like a summary.
    #[error("not a summary of ranks: expected a file that `mindprof summarize` wrote")]
    Foreign,
    /// The summary was written by another version of the format.
    #[error("summary has format version {found}, expected {expected}")]
    Version {
        /// The version that the bytes name.
        found: u8,
        /// The version that this program reads.
        expected: u8,
    },
    /// The bytes end early, were altered, or contradict themselves.
    #[error("damaged summary: {0}")]
    Damaged(&'static str),
}

/// The result of reading a summary.
pub type Result<T, E = Error> = std::result::Result<T, E>;
