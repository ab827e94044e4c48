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
    /// A result of torch's collector, read from memory, differs from what its accessors say.
    #[error("torch's results differ in memory from their accessors: {what} of event {position}")]
    Different {
        /// The facts that differ.
        what: &'static str,
        /// The position of the event.
        position: usize,
    },
    /// An event is linked to a correlation id that no collector assigns. The text is torch's.
    #[error("Got negative correlation id {0} in profiler post processing")]
    NegativeLink(i128),
}

/// What a step towards the observer returns.
pub type Result<T> = std::result::Result<T, Error>;
