//! Events of kinds that a profile has no other place for.

use crate::{TextId, ThreadId};

/// An event of a kind that a profile has no other place for, such as a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEvent {
    /// When it was, in nanoseconds since the profile's reference time, or before it.
    pub time_ns: i64,
    /// The track it lies on.
    pub thread: ThreadId,
    /// What it says but for time and track.
    pub text: TextId,
}
