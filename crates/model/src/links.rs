//! Numbers by which a trace file ties events together.

use crate::ThreadId;

/// The identifiers of one event. Zero stands for "none".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Of a host's scope, its own number; of what a device or its runtime did, the number of the
    /// scope that asked for it.
    pub external: u32,
    /// The number that a call of a device's runtime shares with what the device did for it.
    pub correlation: u32,
    /// One more than the thread that a backward node's forward operator ran on.
    pub(crate) forward: u32,
}

impl Links {
    /// Makes the identifiers of an event that is no backward node.
    pub const fn new(external: u32, correlation: u32) -> Self {
        Self {
            external,
            correlation,
            forward: 0,
        }
    }

    /// Returns the thread that a backward node's forward operator ran on, if it is known.
    pub fn forward_thread(&self) -> Option<ThreadId> {
        self.forward.checked_sub(1).map(ThreadId::from_raw)
    }

    /// Sets the thread that a backward node's forward operator ran on.
    pub fn set_forward_thread(&mut self, thread: Option<ThreadId>) {
        self.forward = thread.map_or(0, |thread| thread.to_raw() + 1);
    }
}
