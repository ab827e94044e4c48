//! The order of events in a trace.

use std::ops::Range;

use mindprof_model::{Category, Event, EventId, Profile};

/// The order in which events are written.
///
/// Both orders hold the same events; they trade the speed of reading for the size of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// By time, so that readers need not sort.
    #[default]
    Time,
    /// By kind, as torch does, and by time within each kind. Similar events are adjacent, which
    /// makes compressed files a tenth smaller.
    Kind,
}

/// The events of a profile in groups, which are written one after the other.
pub(super) struct Groups {
    /// The group of each event, or empty if there is only one group.
    of_events: Vec<u8>,
}

const GROUPS: u8 = 4;

impl Groups {
    /// Groups the events.
    ///
    /// Events with equal start and end are distinguished only by their order in the file, so they
    /// stay in one group: that of Python calls if one of them is a call, because call numbers
    /// follow that order.
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

    /// Returns the groups in order.
    pub(super) const fn all(&self) -> Range<u8> {
        if self.of_events.is_empty() {
            0..1
        } else {
            0..GROUPS
        }
    }

    /// Iterates over the events of a group.
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
