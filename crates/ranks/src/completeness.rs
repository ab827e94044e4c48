//! The gaps that keep a job from being compared as a whole, and why that leaves answers open.
//!
//! A rank that is not there looks like a transfer to the ranks that wait for it, and like a slow rank
//! to those that wait for one which waits itself.

/// The ranks that cannot be compared, by the reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Completeness {
    /// Whether ranks of the job have no trace.
    pub(crate) lacks_ranks: bool,
    /// Whether traces are of another job or run, or disagree with the collectives of the others.
    pub(crate) has_foreign: bool,
    /// Whether collectives end so far apart that ranks have no clock in common.
    pub(crate) has_ends_apart: bool,
}

pub(crate) const MISSING: &str =
    "ranks are missing, and the others may wait for them: add their traces";

pub(crate) const NOT_COMPARED: &str = "some ranks cannot be compared, and the others may wait for them: \
    record all ranks in the same steps of one run";

pub(crate) const NO_COMMON_CLOCK: &str = "the clocks of ranks cannot be aligned, because they share \
    fewer than three collectives or these end far apart: record more steps, and leave a processor to \
    each rank";

/// Why transfers are not told from waits, whether clocks are known or not.
pub(crate) const ENDS_APART: &str = "collectives end far apart on different ranks, so that transfers \
    cannot be told from waits: leave a processor to each rank";

impl Completeness {
    /// Returns why ranks may wait for one that is not compared, or `None` if all are.
    pub(crate) const fn doubt(self) -> Option<&'static str> {
        if self.lacks_ranks {
            Some(MISSING)
        } else if self.has_foreign {
            Some(NOT_COMPARED)
        } else {
            None
        }
    }
}
