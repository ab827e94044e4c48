//! The result of reading a trace file.

use mindprof_model::{Damage, Part, Profile};

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
    /// Which files of a folder were read, each with what was taken from it. Empty for a single file.
    pub sources: Vec<String>,
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
    pub(crate) sources: Vec<String>,
}

impl PartReading {
    /// Builds the profile of the part alone. Its metadata keeps the damage of the trace, and of the
    /// traces that it was written from.
    ///
    /// # Errors
    /// If the part contradicts itself.
    pub(crate) fn into_reading(mut self) -> Result<Reading> {
        let metadata = &mut self.part.metadata;
        let damage = Damage::read(metadata).and(self.repairs.damage());
        damage.write(metadata);
        Ok(Reading {
            profile: self.part.into_profile()?,
            repairs: self.repairs,
            set_aside: self.set_aside,
            left_out: self.left_out,
            unknown_categories: self.unknown_categories,
            sources: self.sources,
        })
    }
}
