//! Launches of kernels that no kernel answers: what the device's own recorder lost.
//!
//! Every call that launches a kernel has a number that its kernel has too. Comes from the reader's
//! events, goes into the loss of the part.

use rustc_hash::FxHashSet;

/// What is known of launches so far.
#[derive(Default)]
pub(super) struct Launches {
    launched: Vec<i128>,
    reported: FxHashSet<i128>,
    /// Whether calls were put down in a graph, to be run later or never.
    has_graphs: bool,
}

impl Launches {
    /// Takes a call into the runtime.
    pub(super) fn add_call(&mut self, name: &str, correlation: i128) {
        if name.contains("LaunchKernel") {
            self.launched.push(correlation);
        }
        self.has_graphs |= name.contains("StreamBeginCapture");
    }

    /// Takes what a device did.
    pub(super) fn add_work(&mut self, correlation: i128) {
        self.reported.insert(correlation);
    }

    /// Returns how many launches have no kernel. Where a graph was captured that is not known: its
    /// launches have none.
    pub(super) fn unreported(&self) -> u64 {
        if self.has_graphs {
            return 0;
        }
        let launched = self.launched.iter();
        let lost = launched.filter(|number| !self.reported.contains(number));
        lost.count() as u64
    }
}
