//! Launches of kernels that no kernel answers: what the device's own recorder lost.
//!
//! Every call that launches a kernel has a number that its kernel has too. Comes from the reader's
//! events, goes into the loss of the part.

use mindprof_model::StringId;

/// What is known of launches so far.
#[derive(Default)]
pub(super) struct Launches {
    launched: Vec<i64>,
    reported: Vec<i64>,
    /// By the ids of names, what calls of a name do; each is looked up once.
    kinds: Vec<Option<CallKind>>,
    /// Whether calls were put down in a graph, to be run later or never.
    has_graphs: bool,
}

#[derive(Clone, Copy)]
enum CallKind {
    Launch,
    GraphBegin,
    Other,
}

impl Launches {
    /// Takes a call into the runtime.
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

    /// Takes what a device did.
    pub(super) fn add_work(&mut self, correlation: i128) {
        self.reported.push(correlation as i64);
    }

    /// Returns how many launches have no kernel. Where a graph was captured that is not known: its
    /// launches have none.
    pub(super) fn unreported(&mut self) -> u64 {
        if self.has_graphs {
            return 0;
        }
        // Both come nearly in order.
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
