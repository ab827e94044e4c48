//! Threads: the tracks that events lie on.

use crate::{DeviceKind, StringId};

/// A track of events: an operating system thread, or a stream of a device. Both have one type,
/// because events, nesting and outputs treat them alike; `device` tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The process id, or for a stream the index of its device.
    pub process: u64,
    /// The operating system's thread id, or for a stream its number.
    pub native: u64,
    /// The name of the thread; empty if it has none.
    pub name: StringId,
    /// The kind of device that its events run on.
    pub device: DeviceKind,
}
