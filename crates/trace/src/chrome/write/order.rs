//! The order in which a trace tells events.

use std::ops::Range;

use mindprof_model::{Category, Event, EventId, Profile};

/// In which order events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// By time: who reads it again has nothing to sort.
    #[default]
    Time,
    /// Those of one kind together, as torch does, and each kind by time: what follows each other is
    /// alike, and compresses to a tenth less.
    Kind,
}

/// The events of a profile in groups, of which one is written after the other.
pub(super) struct Groups {
    /// By event, its group; nothing if there is one group only.
    of_events: Vec<u8>,
}

const GROUPS: u8 = 4;

impl Groups {
    /// Events that begin and end together are told apart by their order in the file alone, so that
    /// they stay in one group: that of calls if one of them is a call, whose numbers follow their
    /// order.
    pub(super) fn build(profile: &Profile, order: EventOrder) -> Self {
        let mut of_events = Vec::new();
        if order == EventOrder::Kind {
            let is_tied = |a: &Event, b: &Event| (a.start, a.duration) == (b.start, b.duration);
            for tied in profile.events().chunk_by(is_tied) {
                let call = tied
                    .iter()
                    .find(|event| event.category == Category::PythonFunction);
                let group = group_of(call.unwrap_or(&tied[0]).category);
                of_events.extend(std::iter::repeat_n(group, tied.len()));
            }
        }
        Self { of_events }
    }

    /// Returns the groups, in their order.
    pub(super) const fn all(&self) -> Range<u8> {
        if self.of_events.is_empty() {
            0..1
        } else {
            0..GROUPS
        }
    }

    /// Walks the events of a group.
    pub(super) fn events<'a>(
        &'a self,
        profile: &'a Profile,
        group: u8,
    ) -> impl Iterator<Item = (EventId, &'a Event)> {
        let events = profile.events().iter().enumerate();
        let is_of_group = move |index: usize| {
            let own = self.of_events.get(index);
            own.is_none_or(|&own| own == group)
        };
        events
            .filter(move |(index, _)| is_of_group(*index))
            .map(|(index, event)| (EventId::from_index(index), event))
    }
}

const fn group_of(category: Category) -> u8 {
    match category {
        Category::Operator | Category::Annotation | Category::Other => 0,
        Category::PythonFunction => 1,
        Category::Runtime => 2,
        Category::Kernel | Category::DeviceAnnotation => 3,
    }
}
