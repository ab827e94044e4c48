//! What reading a trace is asked for.

use std::fmt;

/// How a trace is read.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Is told now and then how many of the file's bytes were read, and how many there are.
    pub progress: Option<Progress<'a>>,
    /// What becomes of what the trace says beyond what profiles know.
    pub unknown: UnknownArgs,
    /// How many bytes of text are read, unpacked. None reads files that are not compressed to their
    /// end, and of others [`UNPACKED_BYTES`] or, where that is more, [`UNPACKED_TIMES`] what is
    /// packed.
    pub max_bytes: Option<u64>,
}

/// How much of a compressed file is unpacked in any case, unless a limit is given.
pub const UNPACKED_BYTES: u64 = 1 << 30;
/// How many times its size a compressed file is unpacked to, unless a limit is given: traces shrink to
/// a tenth or a thirtieth, and what was made to fill the memory of others to a thousandth.
pub const UNPACKED_TIMES: u64 = 100;

/// What becomes of what a trace says beyond what profiles know, such as counters and arguments of
/// kernels. It is looked at and repaired alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownArgs {
    /// It is kept, for who writes the trace again.
    #[default]
    Keep,
    /// It is counted, for who does not: that takes less memory. Numbers of events by which no
    /// other is tied to them are not kept either.
    Count,
}

/// Takes the bytes of a file that were read so far, and all that there are (zero when it is not
/// known).
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
