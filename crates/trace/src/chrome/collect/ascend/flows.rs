//! The flows of an NPU's trace, which tie operators, queued tasks, calls of CANN and kernels.

use mindprof_model::ThreadId;

/// The kinds of flows, by the events at their two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::chrome::collect) enum FlowKind {
    /// From an operator to a kernel.
    Kernel,
    /// From the place where a task was queued to the place where another thread took it.
    Queue,
    /// From a call of CANN to a kernel.
    Launch,
}

impl FlowKind {
    /// Returns the kind with this category, which is JSON.
    pub(super) fn of(category: &[u8]) -> Option<Self> {
        match category {
            b"\"async_npu\"" => Some(Self::Kernel),
            b"\"async_task_queue\"" => Some(Self::Queue),
            b"\"HostToDevice\"" => Some(Self::Launch),
            _ => None,
        }
    }
}

/// The side of a flow that an end is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::chrome::collect) enum FlowSide {
    Tail,
    Head,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowEnd {
    pub(super) kind: FlowKind,
    pub(super) side: FlowSide,
    pub(super) id: u64,
    pub(super) thread: ThreadId,
    /// Relative to the trace's base, like the starts of events while they are collected.
    pub(super) time: i64,
}

/// The ends of all flows.
///
/// The collector adds them as they come; `launches` finds the events at them once events have their
/// order.
#[derive(Default)]
pub(in crate::chrome::collect) struct Flows {
    pub(super) ends: Vec<FlowEnd>,
}

impl Flows {
    pub(super) fn add(
        &mut self,
        kind: FlowKind,
        side: FlowSide,
        id: u64,
        thread: ThreadId,
        time: i64,
    ) {
        self.ends.push(FlowEnd {
            kind,
            side,
            id,
            thread,
            time,
        });
    }

    /// Calls `visit` with the thread of every end.
    pub(in crate::chrome::collect) fn each_thread(&mut self, visit: impl FnMut(&mut ThreadId)) {
        self.ends
            .iter_mut()
            .map(|end| &mut end.thread)
            .for_each(visit);
    }
}
