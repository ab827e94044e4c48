//! Why the observer cannot be used: each is a reason to take another way.

/// The reasons for which libtorch is not observed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// How C++ calls functions here is not known.
    #[error("the observer works on Linux on x86-64 alone")]
    Platform,
    /// libtorch is not in the process, or not under its name.
    #[error("{0} is not loaded")]
    Library(&'static str),
    /// A function is not there.
    #[error("libtorch has no symbol {0}")]
    Symbol(&'static str),
    /// Something does not lie where it could be found, or lies at several places.
    #[error("the layout of torch's objects is not as expected: {0}")]
    Layout(String),
}

/// What a step towards the observer returns.
pub type Result<T> = std::result::Result<T, Error>;
