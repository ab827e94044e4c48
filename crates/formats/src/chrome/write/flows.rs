//! The arrows from forward operators to the backward nodes they led to.

use mindprof_model::{EventId, Profile, ScopeKind};
use rustc_hash::FxHashMap;

use crate::chrome::category::is_backward_wrapper;

/// Which events arrows leave and reach.
///
/// ```text
/// linear     |-----------|                           sequence 7
///   t          |--|----------------------.           sequence 7, the last to start: the tail
/// TBackward0                             '->|---|    sequence 7, backward: the head
/// ```
pub(super) struct Flows {
    forward: FxHashMap<u32, EventId>,
    ends: FxHashMap<EventId, FlowEnd>,
}

/// One end of an arrow, with the arrow's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowEnd {
    /// The arrow leaves here.
    Tail(u32),
    /// The arrow arrives here.
    Head(u32),
}

impl Flows {
    /// Finds the arrows of a profile. They are numbered from one in the order of the backward nodes.
    pub(super) fn build(profile: &Profile) -> Self {
        let mut forward = FxHashMap::default();
        let mut backward = Vec::new();
        for (index, event) in profile.events().iter().enumerate() {
            let Some(sequence) = event.sequence() else {
                continue;
            };
            let id = EventId::from_index(index);
            match event.scope {
                ScopeKind::Backward => backward.push((sequence, id)),
                ScopeKind::Function if !is_backward_wrapper(profile.name(event)) => {
                    forward.insert(sequence, id);
                }
                ScopeKind::Function | ScopeKind::User => {}
            }
        }
        let mut ends = FxHashMap::default();
        let mut next = 1;
        for (sequence, head) in backward {
            let Some(&tail) = forward.get(&sequence) else {
                continue;
            };
            if ends.contains_key(&tail) {
                continue;
            }
            ends.insert(tail, FlowEnd::Tail(next));
            ends.insert(head, FlowEnd::Head(next));
            next += 1;
        }
        Self { forward, ends }
    }

    /// Returns the last forward operator of a sequence number.
    pub(super) fn forward(&self, sequence: u32) -> Option<EventId> {
        self.forward.get(&sequence).copied()
    }

    /// Returns the end of the arrow that leaves or reaches an event.
    pub(super) fn end_at(&self, id: EventId) -> Option<FlowEnd> {
        self.ends.get(&id).copied()
    }
}
