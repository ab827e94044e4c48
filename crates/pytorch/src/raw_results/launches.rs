//! Counts kernel launches without a kernel: work that the device's own recorder lost.
//!
//! A launch and its kernel share a correlation id. The events come from the reader, the count goes
//! into the loss of the part.

use mindprof_model::StringId;

/// The correlation ids of launches and of device work seen so far.
#[derive(Default)]
pub(super) struct Launches {
    launched: Vec<i64>,
    reported: Vec<i64>,
    /// The kind of call by the id of its name, each computed once.
    kinds: Vec<Option<CallKind>>,
    /// Whether calls were captured into a graph, which may run later or never.
    has_graphs: bool,
}

#[derive(Clone, Copy)]
enum CallKind {
    Launch,
    GraphBegin,
    Other,
}

impl Launches {
    /// Adds a call into the runtime.
    pub(super) fn add_call(&mut self, name: StringId, text: &str, correlation: i128) {
        if self.kinds.len() <= name.index() {
            self.kinds.resize(name.index() + 1, None);
        }
        match *self.kinds[name.index()].get_or_insert_with(|| CallKind::of(text)) {
            CallKind::Launch => self.launched.push(correlation as i64),
            CallKind::GraphBegin => self.has_graphs = true,
            CallKind::Other => {}
        }
    }

    /// Adds work of a device.
    pub(super) fn add_work(&mut self, correlation: i128) {
        self.reported.push(correlation as i64);
    }

    /// Returns the number of launches without a kernel. Returns zero if a graph was captured,
    /// because captured launches never have one.
    pub(super) fn unreported(&mut self) -> u64 {
        if self.has_graphs {
            return 0;
        }
        // Both are nearly sorted already.
        self.launched.sort_unstable();
        self.reported.sort_unstable();
        let mut reported = self.reported.iter().peekable();
        let is_lost = |number: &&i64| {
            while reported.next_if(|next| next < number).is_some() {}
            reported.peek() != Some(number)
        };
        self.launched.iter().filter(is_lost).count() as u64
    }
}

impl CallKind {
    fn of(name: &str) -> Self {
        // cudaLaunchKernelExC, cuLaunchCooperativeKernel, urEnqueueKernelLaunch.
        if name.contains("Launch") && name.contains("Kernel") {
            Self::Launch
        } else if name.contains("StreamBeginCapture") {
            Self::GraphBegin
        } else {
            Self::Other
        }
    }
}
