//! Options for reading a trace.

use std::fmt;

/// Options for reading a trace.
///
/// The default keeps everything, reports no progress and limits only compressed input.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// A callback for the number of bytes read so far and the size of the file.
    pub progress: Option<Progress<'a>>,
    /// Whether unknown fields and events are kept or only counted.
    pub unknown: UnknownArgs,
    /// The largest number of bytes to read, after decompression.
    ///
    /// With `None`, uncompressed input has no limit, and compressed input is read up to
    /// [`UNPACKED_BYTES`] or [`UNPACKED_TIMES`] its compressed size, whichever is more.
    pub max_bytes: Option<u64>,
}

/// The number of bytes that a compressed file may always decompress to, unless a limit is given.
pub const UNPACKED_BYTES: u64 = 1 << 30;
/// The compression ratio up to which a file is read, unless a limit is given.
///
/// Traces shrink to between a tenth and a thirtieth; decompression bombs shrink to a thousandth.
pub const UNPACKED_TIMES: u64 = 100;

/// How a reader treats fields, arguments and events that profiles have no place for, such as
/// counters and launch parameters of kernels.
///
/// Both ways validate and repair them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownArgs {
    /// Keep them, so that writing the trace again round-trips them.
    #[default]
    Keep,
    /// Keep those that describe events, such as the shapes and counters of kernels, but not those
    /// that only tell events apart, such as the ids of an NPU's tasks, where that takes less memory.
    /// Callers that look at arguments and do not write the trace again need no more.
    Describe,
    /// Only count them, which takes less memory, for callers that do not write the trace again.
    /// Correlation ids that tie an event to no other one are dropped too.
    Count,
}

impl UnknownArgs {
    /// Returns whether fields, arguments and events are kept that describe something.
    pub(crate) const fn are_kept(self) -> bool {
        match self {
            Self::Keep | Self::Describe => true,
            Self::Count => false,
        }
    }
}

/// A progress callback: it receives the number of bytes read so far and the size of the file, or
/// zero if the size is unknown.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

impl fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ReadOptions")
            .field("progress", &self.progress.is_some())
            .field("unknown", &self.unknown)
            .field("max_bytes", &self.max_bytes)
            .finish()
    }
}
