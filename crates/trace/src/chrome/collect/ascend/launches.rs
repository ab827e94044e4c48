//! Links the kernels of an NPU's trace to their operators and to the calls that launched them.
//!
//! ```text
//! aten::mm      |---------|                     an async_npu flow leads from here to the kernel
//!  Enqueue        |--|                          an async_task_queue flow leads to the dequeue
//! Dequeue@mm           |-----------------|      on another thread
//!  AscendCL@mm           |------------|         a HostToDevice flow leads from here to the kernel
//! MatMulV2                       |---------|
//! ```
//!
//! Flows name threads and times. One sweep over the events in time order finds the events there.

use mindprof_model::{Category, Event, Flags};
use rustc_hash::FxHashMap;

use super::flows::{FlowEnd, FlowKind, FlowSide};
use crate::chrome::collect::Collector;

/// The events around one end of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    /// The innermost operator or range.
    scope: Option<u32>,
    /// The innermost call of the runtime.
    call: Option<u32>,
    /// The outermost call of the runtime.
    outer_call: Option<u32>,
    /// The last event on the track that began.
    last: Option<u32>,
}

impl Collector {
    /// Sets the links that the flows of an NPU's trace state. Events have their order; their starts
    /// still count from `offset`, and the times of flows from `zero`.
    pub(in crate::chrome::collect) fn link_launches(&mut self, zero: i64, offset: i64) {
        let mut ends = std::mem::take(&mut self.flows).ends;
        if ends.is_empty() {
            return;
        }
        for end in &mut ends {
            end.time -= zero;
        }
        ends.sort_by_key(|end| end.time);
        let starts = |event: &Event| event.start.0 as i64 - offset;
        let arounds = find_events(&self.events, starts, &ends, self.tracks.len());
        let found = Found::build(&self.events, &ends, &arounds);
        // Correlation ids are below the number of events, external ids are above.
        let mut next_external = self.events.len() as u32;
        let mut correlations: FxHashMap<u32, u32> = FxHashMap::default();
        let mut kernels: Vec<(u32, Option<u32>, Option<u32>)> = found.kernels().collect();
        kernels.sort_unstable();
        for (kernel, scope, call) in kernels {
            let mut links = self.links.at(kernel as usize);
            if let Some(scope) = scope {
                links.external = self.external_of(scope, &mut next_external);
            }
            if let Some(call) = call {
                let next = correlations.len() as u32 + 1;
                links.correlation = *correlations.entry(call).or_insert(next);
            }
            self.links.set(kernel as usize, links);
        }
        for (call, correlation) in correlations {
            let mut links = self.links.at(call as usize);
            links.correlation = correlation;
            self.links.set(call as usize, links);
        }
    }

    /// Returns the external id of an operator, which gets the next one if it has none.
    fn external_of(&mut self, scope: u32, next: &mut u32) -> u32 {
        let mut links = self.links.at(scope as usize);
        if links.external == 0 {
            *next += 1;
            links.external = *next;
            self.links.set(scope as usize, links);
        }
        links.external
    }
}

/// The events that flows connect, by the ids of flows.
#[derive(Default)]
struct Found {
    /// The operator of each kernel, by `async_npu` flows.
    scopes: FxHashMap<u32, u32>,
    /// The call that launched each kernel, by `HostToDevice` flows.
    calls: FxHashMap<u32, Around>,
    /// The operator that queued the task of each dequeue.
    queued_by: FxHashMap<u32, u32>,
}

impl Found {
    fn build(events: &[Event], ends: &[FlowEnd], arounds: &[Around]) -> Self {
        let mut tails: FxHashMap<(FlowKind, u64), Around> = FxHashMap::default();
        for (end, around) in ends.iter().zip(arounds) {
            if end.side == FlowSide::Tail {
                tails.insert((end.kind, end.id), *around);
            }
        }
        let mut found = Self::default();
        for (end, around) in ends.iter().zip(arounds) {
            if end.side == FlowSide::Tail {
                continue;
            }
            let Some(&tail) = tails.get(&(end.kind, end.id)) else {
                continue;
            };
            let is_kernel = |&event: &u32| events[event as usize].category == Category::Kernel;
            let kernel = around.last.filter(is_kernel);
            match end.kind {
                FlowKind::Kernel => found.scopes.extend(kernel.zip(tail.scope)),
                FlowKind::Launch => found.calls.extend(kernel.map(|kernel| (kernel, tail))),
                FlowKind::Queue => found.queued_by.extend(around.outer_call.zip(tail.scope)),
            }
        }
        found
    }

    /// Returns each kernel with its operator and the call that launched it. Without a flow from an
    /// operator, it is the one around the call, or the one that queued the task.
    fn kernels(&self) -> impl Iterator<Item = (u32, Option<u32>, Option<u32>)> {
        let lone = self
            .calls
            .keys()
            .filter(|kernel| !self.scopes.contains_key(kernel));
        self.scopes.keys().chain(lone).map(|kernel| {
            let launch = self.calls.get(kernel).copied().unwrap_or_default();
            let queued_by = || self.queued_by.get(&launch.outer_call?).copied();
            let scope = self.scopes.get(kernel).copied();
            let scope = scope.or(launch.scope).or_else(queued_by);
            (*kernel, scope, launch.call)
        })
    }
}

/// Finds the events around each end, which are sorted by time. An end belongs to events that begin
/// with it.
fn find_events(
    events: &[Event],
    start: impl Fn(&Event) -> i64,
    ends: &[FlowEnd],
    tracks: usize,
) -> Vec<Around> {
    let mut open: Vec<Vec<u32>> = vec![Vec::new(); tracks];
    let mut last = vec![None; tracks];
    let mut next = 0;
    let mut arounds = Vec::with_capacity(ends.len());
    let end_of = |event: &Event| start(event).saturating_add_unsigned(event.duration.0);
    for end in ends {
        while let Some(event) = events.get(next).filter(|event| start(event) <= end.time) {
            let track = event.thread.index();
            last[track] = Some(next as u32);
            if is_around(event) {
                let open = &mut open[track];
                let is_over =
                    |&mut other: &mut u32| end_of(&events[other as usize]) <= start(event);
                while open.pop_if(is_over).is_some() {}
                open.push(next as u32);
            }
            next += 1;
        }
        let track = end.thread.index();
        let mut around = Around {
            last: last[track].filter(|&event: &u32| start(&events[event as usize]) == end.time),
            ..Around::default()
        };
        for &other in &open[track] {
            let event = &events[other as usize];
            if end_of(event) < end.time {
                continue;
            }
            if event.category == Category::Runtime {
                around.outer_call = around.outer_call.or(Some(other));
                around.call = Some(other);
            } else {
                around.scope = Some(other);
            }
        }
        arounds.push(around);
    }
    arounds
}

/// Returns whether an event can be the origin of device work.
fn is_around(event: &Event) -> bool {
    let can_launch = matches!(
        event.category,
        Category::Operator | Category::Annotation | Category::Runtime
    );
    can_launch && !event.flags.contains(Flags::HIDDEN)
}
