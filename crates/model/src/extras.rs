//! What a trace file says beyond what a profile knows: texts that go with events and memory
//! records, and records of kinds that a profile has no other place for.
//!
//! They are kept for who writes the profile again. What they mean is between the reader and the
//! writer of a format.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::{PackedTexts, TextId, ThreadId};

/// What is said beyond what is known, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExtraKind {
    /// The exact category of an event.
    Category,
    /// Further fields of an event.
    Fields,
    /// Further arguments of an event.
    Arguments,
    /// Further arguments of a memory record.
    MemoryArguments,
    /// What is said of a thread and its process beyond their numbers and the thread's name.
    Track,
}

impl ExtraKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Category,
        Self::Fields,
        Self::Arguments,
        Self::MemoryArguments,
        Self::Track,
    ];

    /// The kinds that go with events.
    pub const OF_EVENTS: [Self; 3] = [Self::Category, Self::Fields, Self::Arguments];
}

/// A record of a kind that a profile has no other place for, such as a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignRecord {
    /// When it was, in nanoseconds since the profile's reference time, or before it.
    pub time_ns: i64,
    /// The track it lies on.
    pub thread: ThreadId,
    /// What it says but for time and track.
    pub text: TextId,
}

/// Everything that is said beyond what is known.
#[derive(Clone, Default)]
pub struct Extras {
    /// The texts.
    pub texts: PackedTexts,
    /// By kind, what has such a text, in the order of the profile.
    rows: [Vec<Row>; ExtraKind::ALL.len()],
    records: Vec<ForeignRecord>,
}

/// The text that goes with the event, memory record or thread at `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    index: u32,
    text: TextId,
}

impl Extras {
    /// Says what goes with the event or memory record at `index`. Any order will do, until the
    /// profile is built.
    pub fn set(&mut self, kind: ExtraKind, index: usize, text: TextId) {
        // What has no number beyond 2^32 is in no profile.
        if let Ok(index) = u32::try_from(index) {
            self.rows[kind as usize].push(Row { index, text });
        }
    }

    /// Says anew what goes with the events at some indices, or that nothing does.
    pub fn replace(&mut self, kind: ExtraKind, changes: &FxHashMap<usize, Option<TextId>>) {
        let rows = &mut self.rows[kind as usize];
        rows.retain(|row| !changes.contains_key(&(row.index as usize)));
        for (&index, text) in changes {
            if let Some(text) = *text {
                self.set(kind, index, text);
            }
        }
        self.rows[kind as usize].sort_unstable();
    }

    /// Adds a record of a foreign kind. Any order will do.
    pub fn add_record(&mut self, record: ForeignRecord) {
        self.records.push(record);
    }

    /// Returns what goes with the event or memory record at `index`.
    pub fn of(&self, kind: ExtraKind, index: usize) -> Option<TextId> {
        let rows = &self.rows[kind as usize];
        let found = rows.binary_search_by_key(&index, |row| row.index as usize);
        found.ok().map(|place| rows[place].text)
    }

    /// Walks the texts of a kind beside the events or memory records of the profile.
    pub fn walk(&self, kind: ExtraKind) -> ExtraWalk<'_> {
        let rows = &self.rows[kind as usize];
        ExtraWalk { rows }
    }

    /// Walks what has a text of a kind, by its number among the events, memory records or threads.
    pub(crate) fn rows(&self, kind: ExtraKind) -> impl Iterator<Item = (usize, TextId)> {
        let rows = self.rows[kind as usize].iter();
        rows.map(|row| (row.index as usize, row.text))
    }

    /// Keeps the texts of the threads that have an id among `ids`, under it.
    pub(crate) fn retain_tracks(&mut self, ids: &[Option<ThreadId>]) {
        let rows = std::mem::take(&mut self.rows[ExtraKind::Track as usize]);
        for row in rows {
            if let Some(id) = ids[row.index as usize] {
                self.set(ExtraKind::Track, id.index(), row.text);
            }
        }
    }

    /// Returns the records of foreign kinds, ordered by time.
    pub fn records(&self) -> &[ForeignRecord] {
        &self.records
    }

    /// Returns the records of foreign kinds, to settle their times.
    pub fn records_mut(&mut self) -> &mut [ForeignRecord] {
        &mut self.records
    }

    /// Returns how many texts of a kind there are.
    pub fn count(&self, kind: ExtraKind) -> usize {
        self.rows[kind as usize].len()
    }

    /// Returns whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.rows.iter().all(Vec::is_empty)
    }

    /// Returns about how many bytes all of it takes.
    pub fn bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(Vec::len).sum();
        let records = self.records.len();
        self.texts.bytes() + rows * size_of::<Row>() + records * size_of::<ForeignRecord>()
    }

    /// Lets the texts of a kind follow what they go with into another order: `order` names, for
    /// each place, what comes there.
    pub fn reorder(&mut self, kind: ExtraKind, order: &[u32]) {
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

    /// Puts everything into its order, when nothing more comes.
    pub(crate) fn settle(&mut self) {
        for rows in &mut self.rows {
            if !rows.is_sorted() {
                rows.sort_unstable();
            }
        }
        self.records.sort_by_key(|record| record.time_ns);
    }
}

/// Shows what is said, and not where its texts lie: two readings of one trace are alike.
impl fmt::Debug for Extras {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_list();
        for kind in ExtraKind::ALL {
            let rows = &self.rows[kind as usize];
            shown.entries(
                rows.iter()
                    .map(|row| (kind, row.index, self.texts.text(row.text))),
            );
        }
        let text = |record: &ForeignRecord| self.texts.text(record.text);
        let records = self.records.iter();
        shown.entries(records.map(|record| (record.time_ns, record.thread, text(record))));
        shown.finish()
    }
}

/// The texts of one kind that are still to come.
#[derive(Clone, Debug)]
pub struct ExtraWalk<'a> {
    rows: &'a [Row],
}

impl ExtraWalk<'_> {
    /// Returns what goes with the event or memory record at `index`, of which each is later than
    /// the one before.
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
    fn what_is_said_anew_takes_the_place_of_what_was() {
        let mut extras = Extras::default();
        let [old, new] = ["old", "new"].map(|text| extras.texts.add(text).unwrap());
        for index in [1, 3] {
            extras.set(ExtraKind::Arguments, index, old);
        }
        let changes = [(3, Some(new)), (2, Some(new)), (1, None), (0, None)];
        extras.replace(ExtraKind::Arguments, &changes.into_iter().collect());
        let found = [0, 1, 2, 3].map(|index| extras.of(ExtraKind::Arguments, index));
        assert_eq!(found, [None, None, Some(new), Some(new)]);
    }

    #[test]
    fn texts_follow_their_events_into_another_order() {
        let mut extras = Extras::default();
        let text = extras.texts.add("\"grid\":[1,2]").unwrap();
        extras.set(ExtraKind::Arguments, 0, text);
        extras.set(ExtraKind::Fields, 2, text);
        extras.reorder(ExtraKind::Arguments, &[2, 1, 0]);
        extras.settle();
        let found = [0, 1, 2].map(|index| extras.of(ExtraKind::Arguments, index));
        assert_eq!(found, [None, None, Some(text)]);
        assert_eq!(extras.of(ExtraKind::Fields, 2), Some(text));
        let mut walk = extras.walk(ExtraKind::Fields);
        assert_eq!(
            [0, 2, 3].map(|index| walk.at(index)),
            [None, Some(text), None]
        );
    }
}
