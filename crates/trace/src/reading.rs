//! The result of reading a trace file.

use mindprof_model::{Part, Profile};

use crate::error::Result;
use crate::phase_counts::PhaseCounts;
use crate::repairs::Repairs;

/// A trace that was read: its profile, and everything that had to be repaired or set aside.
///
/// It exists because a damaged or foreign trace is still useful: readers keep what they can, and
/// the caller decides from these counts whether that is good enough.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The profile.
    pub profile: Profile,
    /// The repairs made, by kind; empty for a sound trace.
    pub repairs: Repairs,
    /// Records kept verbatim without being understood, such as counters.
    pub set_aside: PhaseCounts,
    /// Records that would have been kept verbatim but took up too large a part of the trace.
    pub left_out: PhaseCounts,
    /// Categories that are not understood, each with its number of events. Their events count as
    /// CPU events.
    pub unknown_categories: Vec<(String, u64)>,
}

/// The result of a reader: a [`Part`] with the same counts as a [`Reading`].
///
/// A reader does not build profiles itself. A part can be appended to others, so a format that
/// spreads one profile over several files reads each of them into a part.
#[derive(Clone, Debug)]
pub(crate) struct PartReading {
    pub(crate) part: Part,
    pub(crate) repairs: Repairs,
    pub(crate) set_aside: PhaseCounts,
    pub(crate) left_out: PhaseCounts,
    pub(crate) unknown_categories: Vec<(String, u64)>,
}

impl PartReading {
    /// Builds the profile of the part alone.
    ///
    /// # Errors
    /// If the part contradicts itself.
    pub(crate) fn into_reading(self) -> Result<Reading> {
        Ok(Reading {
            profile: self.part.into_profile()?,
            repairs: self.repairs,
            set_aside: self.set_aside,
            left_out: self.left_out,
            unknown_categories: self.unknown_categories,
        })
    }
}
