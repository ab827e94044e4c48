//! What can go wrong when a text is laid out. What goes wrong with a file is an error of `formats`,
//! which writes it.

/// The reasons for which a text cannot be laid out as asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Rows have device times, and nothing says of which device.
    #[error("use_device is None, but there is device performance data.")]
    UnknownDevice,
    /// There is no such unit of time.
    #[error("unknown time unit `{name}`, expected one of s, ms, us")]
    UnknownTimeUnit {
        /// The unit that was asked for.
        name: String,
    },
}

/// The result of laying out a text.
pub type Result<T> = std::result::Result<T, Error>;
