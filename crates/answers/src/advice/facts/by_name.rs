//! Finds the events of some names without looking at all events.

use mindprof_model::{EventId, Profile};

/// The events in steps, sorted by name. Most rules look for a few names among many events.
#[derive(Default)]
pub(super) struct ByName {
    /// By name, the place of its first event in the list.
    firsts: Vec<u32>,
    events: Vec<EventId>,
}

/// A list is searched for events of known names if that takes fewer steps than looking at all of it.
const SEARCH: usize = 20;

impl ByName {
    pub(super) fn build(profile: &Profile, events: &[EventId]) -> Self {
        let mut firsts = vec![0_u32; profile.strings().len() + 1];
        for &id in events {
            firsts[profile.event(id).name.index() + 1] += 1;
        }
        for name in 1..firsts.len() {
            firsts[name] += firsts[name - 1];
        }
        let mut next = firsts.clone();
        let mut sorted = vec![EventId::from_raw(0); events.len()];
        for &id in events {
            let next = &mut next[profile.event(id).name.index()];
            sorted[*next as usize] = id;
            *next += 1;
        }
        Self {
            firsts,
            events: sorted,
        }
    }

    /// Returns the events of a list in time order that have one of these names, or `None` if it is
    /// quicker to look at the whole list.
    pub(super) fn find(&self, names: &[bool], list: &[EventId]) -> Option<Vec<EventId>> {
        let ranges = (names.iter().enumerate())
            .filter(|(_, is_named)| **is_named)
            .map(|(name, _)| self.firsts[name] as usize..self.firsts[name + 1] as usize);
        let ranges: Vec<_> = ranges.collect();
        let count: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        if count * SEARCH > list.len() {
            return None;
        }
        let mut found: Vec<EventId> = (ranges.into_iter())
            .flat_map(|range| &self.events[range])
            .filter(|id| list.binary_search(id).is_ok())
            .copied()
            .collect();
        found.sort_unstable();
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    #[test]
    fn a_search_finds_what_a_look_at_all_finds() {
        let profile = Timeline::draw(|time| {
            for number in 0..200 {
                time.op(if number % 50 == 7 { "rare" } else { "usual" }, 1);
            }
        });
        let all: Vec<EventId> = (0..200).map(EventId::from_index).collect();
        let by_name = ByName::build(&profile, &all);
        let names = |wanted: &str| -> Vec<bool> {
            profile
                .strings()
                .iter()
                .map(|name| name == wanted)
                .collect()
        };
        let even: Vec<EventId> = all.iter().copied().step_by(2).collect();
        let rare = [7, 57, 107, 157].map(EventId::from_index);
        assert_eq!(by_name.find(&names("rare"), &all), Some(rare.to_vec()));
        assert_eq!(by_name.find(&names("rare"), &even), Some(Vec::new()));
        assert_eq!(by_name.find(&names("usual"), &all), None);
    }
}
