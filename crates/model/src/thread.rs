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

impl Thread {
    /// The number of the first track of a device that is no stream. Such a track has a name instead,
    /// as that of a group of ranks whose collectives run on several streams. Numbers of streams are
    /// smaller.
    pub const FIRST_NAMED: u64 = 1 << 32;

    /// Returns the id of a thread or the number of a stream. `None` if the track is no stream.
    pub fn number(&self) -> Option<i64> {
        // Some traces have negative ids.
        let number = self.native as i64;
        let is_named = self.device != DeviceKind::Cpu && number >= Self::FIRST_NAMED as i64;
        (!is_named).then_some(number)
    }
}
