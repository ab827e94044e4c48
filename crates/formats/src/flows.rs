//! The arrows of a trace: from forward operators to the backward nodes they led to, and from calls
//! of a device's runtime to what the device did for them.

use mindprof_model::{Category, Event, EventId, Profile, ScopeKind};
use rustc_hash::FxHashMap;

use crate::chrome::is_backward_wrapper;

/// Which events arrows leave and reach.
///
/// ```text
/// linear     |-----------|                           sequence 7
///   t          |--|----------------------.           sequence 7, the last to start: the tail
/// TBackward0                             '->|---|    sequence 7, backward: the head
///
/// cudaLaunchKernel |--|---.                          correlation 12: the tail
/// kernel                  '---->|-----|              correlation 12: the head
/// ```
#[derive(Debug, Default)]
pub struct Flows {
    forward: FxHashMap<u32, EventId>,
    ends: FxHashMap<EventId, FlowEnd>,
}

/// One end of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// What the arrow stands for.
    pub kind: FlowKind,
    /// Where on the arrow it is.
    pub side: FlowSide,
    /// The arrow's number, unique among those of its kind.
    pub number: u32,
}

/// What an arrow stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// A backward node follows from a forward operator.
    Backward,
    /// A device works because the host asked for it.
    Launch,
}

/// Where on an arrow an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowSide {
    /// The arrow leaves here.
    Tail,
    /// The arrow arrives here.
    Head,
}

impl Flows {
    /// Finds the arrows of a profile. Those to backward nodes are numbered from one in the order of
    /// the nodes, those to devices by their correlation.
    pub fn build(profile: &Profile) -> Self {
        let mut flows = Self::default();
        flows.find_backward(profile);
        if profile.has_links() {
            flows.find_launches(profile);
        }
        flows
    }

    /// Returns the last forward operator of a sequence number.
    pub fn forward(&self, sequence: u32) -> Option<EventId> {
        self.forward.get(&sequence).copied()
    }

    /// Returns the end of the arrow that leaves or reaches an event.
    pub fn end_at(&self, id: EventId, event: &Event) -> Option<FlowEnd> {
        let may_have_one = match event.category {
            Category::Operator => event.sequence().is_some(),
            Category::Runtime | Category::Kernel => true,
            Category::Annotation
            | Category::PythonFunction
            | Category::DeviceAnnotation
            | Category::Other => false,
        };
        // Most events have none, and need no look into the table to know it.
        if may_have_one {
            self.ends.get(&id).copied()
        } else {
            None
        }
    }

    fn find_backward(&mut self, profile: &Profile) {
        let mut backward = Vec::new();
        for (index, event) in profile.events().iter().enumerate() {
            let Some(sequence) = event.sequence() else {
                continue;
            };
            let id = EventId::from_index(index);
            match event.scope {
                ScopeKind::Backward => backward.push((sequence, id)),
                ScopeKind::Function if !is_backward_wrapper(profile.name(event)) => {
                    self.forward.insert(sequence, id);
                }
                ScopeKind::Function | ScopeKind::User => {}
            }
        }
        let mut number = 1;
        for (sequence, head) in backward {
            let Some(&tail) = self.forward.get(&sequence) else {
                continue;
            };
            if self.ends.contains_key(&tail) {
                continue;
            }
            self.add(FlowKind::Backward, number, tail, head);
            number += 1;
        }
    }

    fn find_launches(&mut self, profile: &Profile) {
        let mut calls: FxHashMap<u32, EventId> = FxHashMap::default();
        let mut works = Vec::new();
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            let correlation = profile.links(id).map_or(0, |links| links.correlation);
            match event.category {
                Category::Runtime if correlation != 0 => {
                    calls.entry(correlation).or_insert(id);
                }
                Category::Kernel if correlation != 0 => works.push((correlation, id)),
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
