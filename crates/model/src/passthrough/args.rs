//! The passthrough texts of a profile, by the event, memory record or thread they belong to.

use std::fmt;

use rustc_hash::FxHashMap;

use super::{PassthroughKind, UnknownEvent};
use crate::{PackedTexts, TextId, ThreadId};

/// Unknown event fields and unknown events of a trace file, kept as raw JSON for round-tripping.
/// The reader fills it, analyses ignore it, and the writers put the texts back where they were.
#[derive(Clone, Default)]
pub struct PassthroughArgs {
    /// The texts.
    pub texts: PackedTexts,
    /// The texts of each kind, in the order of the profile.
    rows: [Vec<Row>; PassthroughKind::ALL.len()],
    unknown_events: Vec<UnknownEvent>,
}

/// The text of the event, memory record or thread at `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    index: u32,
    text: TextId,
}

impl PassthroughArgs {
    /// Sets the text of the event or memory record at `index`, in any order, until the profile is
    /// built.
    pub fn set(&mut self, kind: PassthroughKind, index: usize, text: TextId) {
        // No profile has more than 2^32 events.
        if let Ok(index) = u32::try_from(index) {
            self.rows[kind as usize].push(Row { index, text });
        }
    }

    /// Replaces or removes the texts of the events at some indices.
    pub fn replace(&mut self, kind: PassthroughKind, changes: &FxHashMap<usize, Option<TextId>>) {
        let rows = &mut self.rows[kind as usize];
        rows.retain(|row| !changes.contains_key(&(row.index as usize)));
        for (&index, text) in changes {
            if let Some(text) = *text {
                self.set(kind, index, text);
            }
        }
        self.rows[kind as usize].sort_unstable();
    }

    /// Adds entries of JSON objects to the texts of the events at some indices. An event without a
    /// text gets them as its text.
    pub fn add_entries(&mut self, kind: PassthroughKind, mut entries: FxHashMap<usize, String>) {
        let Self { texts, rows, .. } = self;
        for row in &mut rows[kind as usize] {
            if let Some(added) = entries.remove(&(row.index as usize)) {
                let text = texts.text(row.text);
                let joined = match text.as_str() {
                    "" => added,
                    text => format!("{text},{added}"),
                };
                row.text = texts.add(&joined).unwrap_or(row.text);
            }
        }
        for (index, added) in entries {
            if let Some(text) = self.texts.add(&added) {
                self.set(kind, index, text);
            }
        }
    }

    /// Adds an event of an unknown kind, in any order.
    pub fn add_unknown_event(&mut self, event: UnknownEvent) {
        self.unknown_events.push(event);
    }

    /// Returns the text of the event or memory record at `index`.
    pub fn of(&self, kind: PassthroughKind, index: usize) -> Option<TextId> {
        let rows = &self.rows[kind as usize];
        let found = rows.binary_search_by_key(&index, |row| row.index as usize);
        found.ok().map(|at| rows[at].text)
    }

    /// Returns a cursor over the texts of a kind, for a walk over the events or memory records.
    pub fn walk(&self, kind: PassthroughKind) -> PassthroughWalk<'_> {
        let rows = &self.rows[kind as usize];
        PassthroughWalk { rows }
    }

    /// Iterates over the texts of a kind with the indices of their events, memory records or
    /// threads.
    pub(crate) fn rows(&self, kind: PassthroughKind) -> impl Iterator<Item = (usize, TextId)> {
        let rows = self.rows[kind as usize].iter();
        rows.map(|row| (row.index as usize, row.text))
    }

    /// Keeps the texts of threads that have an id in `ids`, under that id.
    pub(crate) fn retain_tracks(&mut self, ids: &[Option<ThreadId>]) {
        let rows = std::mem::take(&mut self.rows[PassthroughKind::Track as usize]);
        for row in rows {
            if let Some(id) = ids[row.index as usize] {
                self.set(PassthroughKind::Track, id.index(), row.text);
            }
        }
    }

    /// Returns the events of unknown kinds, ordered by time.
    pub fn unknown_events(&self) -> &[UnknownEvent] {
        &self.unknown_events
    }

    /// Returns the events of unknown kinds, to change their times and threads.
    pub fn unknown_events_mut(&mut self) -> &mut [UnknownEvent] {
        &mut self.unknown_events
    }

    /// Returns the number of texts of a kind.
    pub fn count(&self, kind: PassthroughKind) -> usize {
        self.rows[kind as usize].len()
    }

    /// Returns whether there is nothing to pass through.
    pub fn is_empty(&self) -> bool {
        self.unknown_events.is_empty() && self.rows.iter().all(Vec::is_empty)
    }

    /// Returns the approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(Vec::len).sum();
        let events = self.unknown_events.len();
        self.texts.bytes() + rows * size_of::<Row>() + events * size_of::<UnknownEvent>()
    }

    /// Follows a reordering of the events or memory records: `order` holds, for each place, the
    /// index of the one that moves there.
    pub fn reorder(&mut self, kind: PassthroughKind, order: &[u32]) {
        let rows = &mut self.rows[kind as usize];
        if rows.is_empty() {
            return;
        }
        let mut places = vec![0; order.len()];
        for (place, &from) in (0..).zip(order) {
            places[from as usize] = place;
        }
        for row in rows {
            row.index = places.get(row.index as usize).map_or(row.index, |at| *at);
        }
    }

    /// Forgets the texts of events from this index on.
    pub fn truncate(&mut self, events: usize) {
        for kind in [
            PassthroughKind::Category,
            PassthroughKind::Fields,
            PassthroughKind::Arguments,
        ] {
            self.rows[kind as usize].retain(|row| (row.index as usize) < events);
        }
    }

    /// Sorts everything, after the last text was added.
    pub(crate) fn settle(&mut self) {
        for rows in &mut self.rows {
            if !rows.is_sorted() {
                rows.sort_unstable();
            }
        }
        self.unknown_events.sort_by_key(|event| event.time_ns);
    }
}

/// Shows the texts themselves and not their ids, so that two readings of one trace look alike.
impl fmt::Debug for PassthroughArgs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_list();
        for kind in PassthroughKind::ALL {
            let rows = &self.rows[kind as usize];
            shown.entries(
                rows.iter()
                    .map(|row| (kind, row.index, self.texts.text(row.text))),
            );
        }
        let text = |event: &UnknownEvent| self.texts.text(event.text);
        let events = self.unknown_events.iter();
        shown.entries(events.map(|event| (event.time_ns, event.thread, text(event))));
        shown.finish()
    }
}

/// A cursor over the texts of one kind. It makes a walk over all events linear, where a lookup for
/// each would search.
#[derive(Clone, Debug)]
pub struct PassthroughWalk<'a> {
    rows: &'a [Row],
}

impl PassthroughWalk<'_> {
    /// Returns the text of the event or memory record at `index`. Each call must pass a larger
    /// index than the one before.
    #[inline]
    pub fn at(&mut self, index: usize) -> Option<TextId> {
        while let Some((row, rest)) = self.rows.split_first()
            && row.index as usize <= index
        {
            self.rows = rest;
            if row.index as usize == index {
                return Some(row.text);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_join_the_texts_that_are_there() {
        let mut args = PassthroughArgs::default();
        let kind = PassthroughKind::Arguments;
        for (index, text) in [(4, "\"a\":1"), (2, "\"b\":2")] {
            let text = args.texts.add(text).unwrap();
            args.set(kind, index, text);
        }
        let added = [(4, "\"c\":3"), (3, "\"d\":4")];
        let added = added.map(|(index, text)| (index, text.to_owned()));
        args.add_entries(kind, added.into_iter().collect());
        args.settle();
        let text = |index| args.of(kind, index).map(|text| args.texts.text(text));
        assert_eq!(text(2).as_deref(), Some("\"b\":2"));
        assert_eq!(text(3).as_deref(), Some("\"d\":4"));
        assert_eq!(text(4).as_deref(), Some("\"a\":1,\"c\":3"));
    }

    #[test]
    fn what_is_said_anew_takes_the_place_of_what_was() {
        let mut passthrough = PassthroughArgs::default();
        let [old, new] = ["old", "new"].map(|text| passthrough.texts.add(text).unwrap());
        for index in [1, 3] {
            passthrough.set(PassthroughKind::Arguments, index, old);
        }
        let changes = [(3, Some(new)), (2, Some(new)), (1, None), (0, None)];
        passthrough.replace(PassthroughKind::Arguments, &changes.into_iter().collect());
        let found = [0, 1, 2, 3].map(|index| passthrough.of(PassthroughKind::Arguments, index));
        assert_eq!(found, [None, None, Some(new), Some(new)]);
    }

    #[test]
    fn texts_follow_their_events_into_another_order() {
        let mut passthrough = PassthroughArgs::default();
        let text = passthrough.texts.add("\"grid\":[1,2]").unwrap();
        passthrough.set(PassthroughKind::Arguments, 0, text);
        passthrough.set(PassthroughKind::Fields, 2, text);
        passthrough.reorder(PassthroughKind::Arguments, &[2, 1, 0]);
        passthrough.settle();
        let found = [0, 1, 2].map(|index| passthrough.of(PassthroughKind::Arguments, index));
        assert_eq!(found, [None, None, Some(text)]);
        assert_eq!(passthrough.of(PassthroughKind::Fields, 2), Some(text));
        let mut walk = passthrough.walk(PassthroughKind::Fields);
        assert_eq!(
            [0, 2, 3].map(|index| walk.at(index)),
            [None, Some(text), None]
        );
    }
}
