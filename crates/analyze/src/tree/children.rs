//! The children of each event: the event tree, read from parents to children.

use mindprof_model::EventId;

use crate::tree::event_tree::Tree;

/// The children of each event in start order, in at most 8 bytes per event.
///
/// [`Tree`] stores only parents, which is all that sums need. Callers that walk down the tree get
/// this index from [`crate::Analysis::children`].
#[derive(Clone, Debug, Default)]
pub struct Children {
    /// The position in `ids` of each event's first child, with one more entry at the end.
    offsets: Vec<u32>,
    ids: Vec<EventId>,
}

impl Children {
    /// Builds the index in time linear in the number of events. Events merged into their parent are
    /// omitted.
    pub fn build(tree: &Tree) -> Self {
        let ids = || (0..tree.len()).map(EventId::from_index);
        let relations = || {
            ids()
                .filter(|&id| !tree.is_merged(id))
                .filter_map(|id| Some((tree.parent(id)?, id)))
        };
        let mut offsets = vec![0_u32; tree.len() + 1];
        for (parent, _) in relations() {
            offsets[parent.index() + 1] += 1;
        }
        for index in 0..tree.len() {
            offsets[index + 1] += offsets[index];
        }
        let mut next = offsets.clone();
        let mut children = vec![EventId::from_raw(0); offsets[tree.len()] as usize];
        for (parent, id) in relations() {
            let place = &mut next[parent.index()];
            children[*place as usize] = id;
            *place += 1;
        }
        Self {
            offsets,
            ids: children,
        }
    }

    /// Returns the children of an event.
    ///
    /// # Panics
    /// If `id` is out of range. An id of another profile gives meaningless children.
    pub fn of(&self, id: EventId) -> &[EventId] {
        let [begin, end] = [id.index(), id.index() + 1].map(|at| self.offsets[at] as usize);
        &self.ids[begin..end]
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;
    use crate::links::correlate::Correlation;
    use crate::rows::keys::Keys;

    // a |---------------|     0..30
    // b   |-----|             5..15
    // c     |-|               8..10
    // d           |--|       20..25
    #[test]
    fn children_come_in_start_order() {
        let profile = Timeline::draw(|time| {
            time.scope("a", |time| {
                time.idle(5);
                time.scope("b", |time| {
                    time.idle(3);
                    time.op("c", 2);
                    time.idle(5);
                });
                time.idle(5);
                time.op("d", 5);
                time.idle(5);
            });
        });
        let keys = Keys::build(profile.strings());
        let tree = Tree::build(&profile, &keys, &Correlation::default());
        let children = Children::build(&tree);
        let of = |index| children.of(EventId::from_index(index)).to_vec();
        assert_eq!(of(0), [1, 3].map(EventId::from_index));
        assert_eq!(of(1), [2].map(EventId::from_index));
        assert!(of(2).is_empty() && of(3).is_empty());
    }
}
