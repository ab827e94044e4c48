//! The tracks that events lie on.

use crate::{DeviceKind, StringId};

/// A track of events: a thread of the operating system, or a stream of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The process (for a stream: the device's number).
    pub process: u64,
    /// The operating system's thread id (for a stream: the stream's number).
    pub native: u64,
    /// The thread's name, empty if it has none.
    pub name: StringId,
    /// The kind of device its events run on.
    pub device: DeviceKind,
}
