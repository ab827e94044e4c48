//! The lists of inputs of a profile, each held once.

use rustc_hash::FxHashMap;

use crate::{InputsId, InputsIter};

/// The distinct input lists of a profile. Id zero is always the empty list.
#[derive(Clone, Debug)]
pub struct InputsTable {
    lists: Vec<Box<[u64]>>,
    ids: FxHashMap<Box<[u64]>, InputsId>,
}

impl InputsTable {
    /// Makes a table that holds the empty list.
    pub fn new() -> Self {
        let mut table = Self {
            lists: Vec::new(),
            ids: FxHashMap::default(),
        };
        table.intern(&[]);
        table
    }

    /// Returns the id of an encoded list, adding it at first sight.
    pub fn intern(&mut self, words: &[u64]) -> InputsId {
        if let Some(id) = self.find(words) {
            return id;
        }
        let id = InputsId::from_index(self.lists.len());
        self.lists.push(words.into());
        self.ids.insert(words.into(), id);
        id
    }

    /// Returns the id of an encoded list if the table holds it.
    pub fn find(&self, words: &[u64]) -> Option<InputsId> {
        self.ids.get(words).copied()
    }

    /// Returns the words of a list.
    ///
    /// # Panics
    /// When `id` is of another profile.
    pub fn words(&self, id: InputsId) -> &[u64] {
        &self.lists[id.index()]
    }

    /// Walks the inputs of a list.
    ///
    /// # Panics
    /// When `id` is of another profile.
    pub fn inputs(&self, id: InputsId) -> InputsIter<'_> {
        InputsIter::new(self.words(id))
    }

    /// Returns the number of distinct lists, the empty one included.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns whether there is no list but the empty one.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Walks the encoded lists in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.lists.iter().map(AsRef::as_ref)
    }
}

impl Default for InputsTable {
    fn default() -> Self {
        Self::new()
    }
}
