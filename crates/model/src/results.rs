//! The results of operators: the tensors they returned, and the addresses of their storages.
//!
//! Only recordings for execution traces hold results. A row refers to an event, to its results in
//! the profile's table of input lists, and holds the storage address of each tensor.

use crate::InputsId;

/// The results of the events that returned tensors, by event. Few profiles have any, so they lie
/// beside the events instead of in them.
#[derive(Clone, Debug, Default)]
pub struct Results {
    rows: Vec<Row>,
}

/// The results of one event.
#[derive(Clone, Debug)]
struct Row {
    event: usize,
    tensors: InputsId,
    addresses: Box<[u64]>,
}

impl Results {
    /// Returns the tensors that the event at `index` returned, as a list of inputs, and the
    /// addresses of their storages. Returns `None` if none were recorded.
    pub fn of(&self, index: usize) -> Option<(InputsId, &[u64])> {
        let found = self.rows.binary_search_by_key(&index, |row| row.event);
        let row = &self.rows[found.ok()?];
        Some((row.tensors, &row.addresses))
    }

    /// Returns whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds the results of the event at `index`.
    pub(crate) fn set(&mut self, index: usize, tensors: InputsId, addresses: &[u64]) {
        self.rows.push(Row {
            event: index,
            tensors,
            addresses: addresses.into(),
        });
    }

    /// Appends the results of a part whose first event has the index `first` in the whole.
    pub(crate) fn append(
        &mut self,
        part: Self,
        first: usize,
        translate: impl Fn(InputsId) -> InputsId,
    ) {
        self.rows.extend(part.rows.into_iter().map(|row| Row {
            event: first + row.event,
            tensors: translate(row.tensors),
            ..row
        }));
    }

    /// Sorts the rows, after the last one was added.
    pub(crate) fn settle(&mut self) {
        self.rows.sort_by_key(|row| row.event);
    }

    /// Follows a reordering of the events: `order` holds, for each place, the index of the event
    /// that moves there.
    pub(crate) fn reorder(&mut self, order: &[u32]) {
        if self.is_empty() {
            return;
        }
        let mut places = vec![0; order.len()];
        for (place, &index) in order.iter().enumerate() {
            places[index as usize] = place;
        }
        for row in &mut self.rows {
            row.event = places[row.event];
        }
    }

    /// Iterates over the events and their lists of results.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (usize, InputsId)> {
        self.rows.iter().map(|row| (row.event, row.tensors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_follow_their_events_into_another_order() {
        let mut results = Results::default();
        results.set(2, InputsId::from_raw(7), &[3]);
        results.set(0, InputsId::from_raw(5), &[1, 2]);
        results.reorder(&[2, 1, 0]);
        results.settle();
        assert_eq!(results.of(0), Some((InputsId::from_raw(7), &[3][..])));
        assert_eq!(results.of(1), None);
        assert_eq!(results.of(2), Some((InputsId::from_raw(5), &[1, 2][..])));
    }
}
