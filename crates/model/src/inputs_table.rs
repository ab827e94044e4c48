//! The table of input lists of a profile, which interns each list.

use rustc_hash::FxHashMap;

use crate::{InputsId, InputsIter};

/// The distinct input lists of a profile, in encoded form. Operators are called with equal shapes
/// again and again, so interning keeps an event's inputs at 4 bytes. Id zero is always the empty
/// list.
#[derive(Clone, Debug)]
pub struct InputsTable {
    lists: Vec<Box<[u64]>>,
    ids: FxHashMap<Box<[u64]>, InputsId>,
}

impl InputsTable {
    /// Creates a table that holds the empty list.
    pub fn new() -> Self {
        let mut table = Self {
            lists: Vec::new(),
            ids: FxHashMap::default(),
        };
        table.intern(&[]);
        table
    }

    /// Returns the id of an encoded list, adding it if it is new.
    pub fn intern(&mut self, words: &[u64]) -> InputsId {
        if let Some(id) = self.find(words) {
            return id;
        }
        let id = InputsId::from_index(self.lists.len());
        self.lists.push(words.into());
        self.ids.insert(words.into(), id);
        id
    }

    /// Returns the id of an encoded list, or `None` if the table does not hold it.
    pub fn find(&self, words: &[u64]) -> Option<InputsId> {
        self.ids.get(words).copied()
    }

    /// Returns the words of a list.
    ///
    /// # Panics
    /// Panics if `id` belongs to another profile.
    pub fn words(&self, id: InputsId) -> &[u64] {
        &self.lists[id.index()]
    }

    /// Iterates over the decoded inputs of a list.
    ///
    /// # Panics
    /// Panics if `id` belongs to another profile.
    pub fn inputs(&self, id: InputsId) -> InputsIter<'_> {
        InputsIter::new(self.words(id))
    }

    /// Returns the number of distinct lists, the empty one included.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns whether the table holds nothing but the empty list.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Iterates over the encoded lists in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.lists.iter().map(AsRef::as_ref)
    }
}

impl Default for InputsTable {
    fn default() -> Self {
        Self::new()
    }
}
