//! Events of kinds that a profile does not model.

use crate::{TextId, ThreadId};

/// An event of a kind that a profile does not model, such as a counter. Its time and track are
/// known, so that cuts and merges treat it correctly; the rest is raw JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEvent {
    /// The time in nanoseconds since the profile's reference time; it may be negative.
    pub time_ns: i64,
    /// The track that it lies on.
    pub thread: ThreadId,
    /// Its fields, except time and track.
    pub text: TextId,
}
