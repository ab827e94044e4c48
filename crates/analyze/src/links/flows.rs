//! Flow events, the arrows of a trace: from forward operators to their backward nodes, and from
//! runtime calls to the device work they launched.

use mindprof_model::{
    Category, DeviceKind, Event, EventId, ForwardThread, Profile, ScopeKind, is_backward_wrapper,
};
use rustc_hash::FxHashMap;

use crate::links::forward::Forwards;

/// The flow events of a profile.
///
/// A profile stores no arrows, only the sequence numbers and correlation ids that they follow from.
/// Writers of trace files look up each event with [`Self::end_at`]; [`Self::forward_thread`] is
/// the thread that torch shows as `fwd_thread`.
///
/// ```text
/// linear     |-----------|                           sequence 7
///   t          |--|----------------------.           sequence 7, the last to start: the tail
/// TBackward0                             '->|---|    sequence 7, backward: the head
///
/// cudaLaunchKernel |--|---.                          correlation 12: the tail
/// kernel                  '---->|-----|              correlation 12: the head
/// ```
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// By backward node, the thread of its forward operator.
    forward_threads: FxHashMap<EventId, ForwardThread>,
    ends: FxHashMap<EventId, FlowEnd>,
}

/// One end of a flow event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// The meaning of the arrow.
    pub kind: FlowKind,
    /// Which end it is.
    pub side: FlowSide,
    /// The number of the arrow, unique among those of its kind.
    pub number: u32,
}

/// The meaning of a flow event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// From a forward operator to its backward node.
    Backward,
    /// From a runtime call to the device work that it launched.
    Launch,
}

/// The two ends of a flow event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowSide {
    /// The arrow starts here.
    Tail,
    /// The arrow ends here.
    Head,
}

impl Flows {
    /// Finds the flow events of a profile. Those to backward nodes are numbered from one in the
    /// order of the nodes; those to devices have the number of their correlation id.
    pub fn build(profile: &Profile) -> Self {
        let mut flows = Self::default();
        flows.find_backward(profile);
        if profile.has_links() {
            flows.find_launches(profile);
        }
        flows
    }

    /// Returns the thread of the forward operator of a backward node, or of the wrapper around one.
    /// `None` for other events.
    pub fn forward_thread(&self, profile: &Profile, node: EventId) -> Option<ForwardThread> {
        let event = profile.event(node);
        if !is_backward(profile, event) {
            return None;
        }
        let links = profile.links(node).unwrap_or_default();
        let named = links.forward_thread();
        Some(self.forward_threads.get(&node).copied().unwrap_or(named))
    }

    /// Returns the end of the arrow that starts or ends at an event, or `None` if there is none.
    pub fn end_at(&self, id: EventId, event: &Event) -> Option<FlowEnd> {
        let may_have_one = match event.category {
            Category::Operator => event.sequence().is_some(),
            Category::Runtime | Category::Kernel | Category::Other => true,
            Category::Annotation | Category::PythonFunction | Category::DeviceAnnotation => false,
        };
        // Most events have none, and their category rules it out without a lookup.
        if may_have_one {
            self.ends.get(&id).copied()
        } else {
            None
        }
    }

    fn find_backward(&mut self, profile: &Profile) {
        let mut forwards: Forwards<EventId> = Forwards::default();
        let mut number = 1;
        for (index, event) in profile.events().iter().enumerate() {
            let Some(sequence) = event.sequence() else {
                continue;
            };
            let id = EventId::from_index(index);
            if !is_backward(profile, event) {
                if event.scope == ScopeKind::Function {
                    let place = (event.thread, sequence);
                    forwards.add(profile, place, id, |_, later| later);
                }
                continue;
            }
            let (thread, tail) = forwards.find(profile, id);
            self.forward_threads.insert(id, thread);
            let tail = tail.filter(|tail| !self.ends.contains_key(tail));
            if let (Some(tail), ScopeKind::Backward) = (tail, event.scope) {
                self.add(FlowKind::Backward, number, tail, id);
                number += 1;
            }
        }
    }

    fn find_launches(&mut self, profile: &Profile) {
        let mut calls: FxHashMap<u32, EventId> = FxHashMap::default();
        let mut works = Vec::new();
        let is_on_device =
            |event: &Event| profile.threads()[event.thread.index()].device != DeviceKind::Cpu;
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            let correlation = profile.links(id).map_or(0, |links| links.correlation);
            match event.category {
                Category::Runtime if correlation != 0 => {
                    calls.entry(correlation).or_insert(id);
                }
                Category::Kernel if correlation != 0 => works.push((correlation, id)),
                // A wait on a device has the correlation id of the runtime call that waited.
                Category::Other if correlation != 0 && is_on_device(event) => {
                    works.push((correlation, id));
                }
                Category::Runtime
                | Category::Kernel
                | Category::Operator
                | Category::Annotation
                | Category::PythonFunction
                | Category::DeviceAnnotation
                | Category::Other => {}
            }
        }
        for (correlation, work) in works {
            if let Some(&call) = calls.get(&correlation) {
                self.add(FlowKind::Launch, correlation, call, work);
            }
        }
    }

    fn add(&mut self, kind: FlowKind, number: u32, tail: EventId, head: EventId) {
        for (id, side) in [(tail, FlowSide::Tail), (head, FlowSide::Head)] {
            self.ends.insert(id, FlowEnd { kind, side, number });
        }
    }
}

/// Returns whether an event is a backward node or the wrapper around one.
pub(crate) fn is_backward(profile: &Profile, event: &Event) -> bool {
    match event.scope {
        ScopeKind::Backward => true,
        ScopeKind::Function | ScopeKind::User => is_backward_wrapper(profile.name(event)),
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{DeviceKind, Links, Nanos, Part, StringTable, Thread, ThreadId};

    use super::*;
    use crate::parts::merge::merge;

    /// A process whose two threads each run a forward operator and its backward node, both with
    /// sequence number 5, and launch a kernel.
    ///
    /// ```text
    /// thread 0   |op|        |node|
    /// thread 1      |op|  |node|
    /// stream              |kernel|     launched by thread 1
    /// ```
    fn part(tells_thread: bool) -> Part {
        let mut part = Part::new();
        let name = part.strings.intern("op");
        let devices = [DeviceKind::Cpu, DeviceKind::Cpu, DeviceKind::Cuda];
        for (native, device) in (0..).zip(devices) {
            part.add_thread(Thread {
                process: 1,
                native,
                name: StringTable::EMPTY,
                device,
            });
        }
        let events = [
            (0, 0, ScopeKind::Function),
            (1, 10, ScopeKind::Function),
            (1, 20, ScopeKind::Backward),
            (0, 30, ScopeKind::Backward),
        ];
        for (thread, start, scope) in events {
            let thread = ThreadId::from_raw(thread);
            let (start, duration) = (Nanos(start), Nanos(5));
            let mut event = Event::new(Category::Operator, name, thread, start, duration);
            event.scope = scope;
            event.set_sequence(Some(5));
            let mut links = Links::default();
            if scope == ScopeKind::Backward && tells_thread {
                links.set_forward_thread(ForwardThread::At(thread));
            }
            part.add_linked_event(event, links);
        }
        for (category, thread) in [(Category::Runtime, 1), (Category::Kernel, 2)] {
            let thread = ThreadId::from_raw(thread);
            let event = Event::new(category, name, thread, Nanos(20), Nanos(1));
            part.add_linked_event(event, Links::new(0, 9));
        }
        part
    }

    /// Returns the arrows, each as the threads and start times of its two events.
    fn arrows(profile: &Profile, kind: FlowKind) -> Vec<[(u32, u64); 2]> {
        let flows = Flows::build(profile);
        let mut found: FxHashMap<u32, [(u32, u64); 2]> = FxHashMap::default();
        for (index, event) in profile.events().iter().enumerate() {
            let Some(end) = flows.end_at(EventId::from_index(index), event) else {
                continue;
            };
            if end.kind == kind {
                let place = &mut found.entry(end.number).or_default()[end.side as usize];
                *place = (event.thread.to_raw(), event.start.0);
            }
        }
        let mut arrows: Vec<_> = found.into_values().collect();
        arrows.sort_unstable();
        arrows
    }

    #[test]
    fn arrows_connect_equal_sequence_numbers_of_one_thread() {
        for tells_thread in [true, false] {
            let profile = part(tells_thread).into_profile().unwrap();
            let found = arrows(&profile, FlowKind::Backward);
            assert_eq!(found, [[(0, 0), (0, 30)], [(1, 10), (1, 20)]]);
        }
    }

    #[test]
    fn a_reused_thread_id_leads_to_the_latest_operator_before_the_node() {
        // op 0, node 0 of the first thread; op 0, node 0 of the next one with its id.
        let mut part = Part::new();
        let name = part.strings.intern("op");
        let thread = part.add_thread(Thread {
            process: 1,
            native: 7,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        let scopes = [ScopeKind::Function, ScopeKind::Backward];
        for (place, scope) in (0..).zip([scopes, scopes].concat()) {
            let (start, duration) = (Nanos(10 * place), Nanos(5));
            let mut event = Event::new(Category::Operator, name, thread, start, duration);
            event.scope = scope;
            event.set_sequence(Some(0));
            part.add_event(event);
        }
        let profile = part.into_profile().unwrap();
        let found = arrows(&profile, FlowKind::Backward);
        assert_eq!(found, [[(0, 0), (0, 10)], [(0, 20), (0, 30)]]);
    }

    #[test]
    fn a_node_whose_forward_ran_elsewhere_has_no_arrow() {
        let mut part = part(true);
        let mut node = *part
            .clone()
            .into_profile()
            .unwrap()
            .events()
            .last()
            .unwrap();
        assert_eq!(node.scope, ScopeKind::Backward);
        node.start = Nanos(50);
        let mut links = Links::default();
        links.set_forward_thread(ForwardThread::Elsewhere);
        part.add_linked_event(node, links);
        let profile = part.into_profile().unwrap();
        assert_eq!(arrows(&profile, FlowKind::Backward).len(), 2);
        let flows = Flows::build(&profile);
        let last = EventId::from_index(profile.events().len() - 1);
        let forward = flows.forward_thread(&profile, last);
        assert_eq!(forward, Some(ForwardThread::Elsewhere));
        assert_eq!(
            profile
                .thread_numbers()
                .forward_number(ForwardThread::Elsewhere),
            3
        );
    }

    #[test]
    fn arrows_of_merged_ranks_stay_within_their_rank() {
        let profile = merge([part(false), part(false)]).unwrap();
        for kind in [FlowKind::Backward, FlowKind::Launch] {
            let found = arrows(&profile, kind);
            assert_eq!(found.len(), if kind == FlowKind::Backward { 4 } else { 2 });
            for [(tail, _), (head, _)] in found {
                let rank = |thread: u32| profile.rank(ThreadId::from_raw(thread));
                assert_eq!(rank(tail), rank(head));
            }
        }
    }
}
