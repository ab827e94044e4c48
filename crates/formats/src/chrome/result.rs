//! What reading a trace gives.

use mindprof_model::Profile;

use super::phase_counts::PhaseCounts;
use super::repairs::Repairs;

/// A trace that was read: the profile, and what had to be put right for it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The profile.
    pub profile: Profile,
    /// What was wrong with the trace, by kind and number; empty for a sound one.
    pub repairs: Repairs,
    /// What the profile keeps as it is without knowing what it means, such as counters.
    pub set_aside: PhaseCounts,
    /// What would have been set aside too, but took too large a part of the trace.
    pub left_out: PhaseCounts,
    /// Categories that are not understood, with the number of their events, which count as the
    /// host's.
    pub unknown_categories: Vec<(String, u64)>,
}
