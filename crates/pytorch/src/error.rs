//! The reasons why libtorch cannot be observed or its results cannot be read. The caller falls back
//! to another way of recording.

/// The reasons why libtorch cannot be observed or its results cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The C++ calling convention of this platform is not supported.
    #[error("the observer supports only Linux on x86-64")]
    Platform,
    /// libtorch is not loaded, or has another file name.
    #[error("{0} is not loaded")]
    Library(&'static str),
    /// libtorch does not export a function.
    #[error("libtorch has no symbol {0}")]
    Symbol(&'static str),
    /// A fact was not found in torch's objects, or was found in several places.
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
    /// CUPTI's records cannot be taken; the text tells the reason.
    #[error("CUPTI's records cannot be taken: {0}")]
    Cupti(String),
    /// An event is linked to a correlation id that no collector assigns. The text is torch's.
    #[error("Got negative correlation id {0} in profiler post processing")]
    NegativeLink(i128),
}

/// The result of a step towards the observer.
pub type Result<T> = std::result::Result<T, Error>;
