//! The string table of a profile, which interns each string.

use rustc_hash::FxHashMap;

use crate::StringId;

/// The distinct strings of a profile, in the order in which they were first interned. Events hold
/// 4-byte ids instead of names, and equal names are found by comparing ids. Id zero is always the
/// empty string.
#[derive(Clone, Debug)]
pub struct StringTable {
    strings: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, StringId>,
}

impl StringTable {
    /// The id of the empty string, which every table holds.
    pub const EMPTY: StringId = StringId::from_raw(0);

    /// Creates a table that holds the empty string.
    pub fn new() -> Self {
        let mut table = Self {
            strings: Vec::new(),
            ids: FxHashMap::default(),
        };
        table.intern("");
        table
    }

    /// Returns the id of `text`, adding it if it is new.
    pub fn intern(&mut self, text: &str) -> StringId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = StringId::from_index(self.strings.len());
        self.strings.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// Returns the id of `text`, or `None` if the table does not hold it.
    pub fn find(&self, text: &str) -> Option<StringId> {
        self.ids.get(text).copied()
    }

    /// Returns the text of `id`.
    ///
    /// # Panics
    /// Panics if `id` belongs to another profile.
    pub fn text(&self, id: StringId) -> &str {
        &self.strings[id.index()]
    }

    /// Returns the number of distinct strings.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Returns whether the table holds nothing but the empty string.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Iterates over the strings in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.strings.iter().map(AsRef::as_ref)
    }
}

impl Default for StringTable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_id() {
        let mut table = StringTable::new();
        let first = table.intern("aten::add");
        assert_eq!(table.intern("aten::add"), first);
        assert_ne!(table.intern("aten::mul"), first);
        assert_eq!(table.text(first), "aten::add");
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn the_empty_string_is_id_zero() {
        assert_eq!(StringTable::new().intern(""), StringTable::EMPTY);
    }
}
