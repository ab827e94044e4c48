//! Builders of dictionary-encoded columns: texts, lists of texts and lists of lists of integers.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::Values;

/// A builder of a column of texts.
#[derive(Debug, Default)]
pub(super) struct TextColumn {
    numbers: Vec<i32>,
    texts: Distinct<String>,
}

impl TextColumn {
    pub(super) fn add(&mut self, text: &str) {
        let number = self.number(text);
        self.numbers.push(number);
    }

    /// Returns the index of a text without adding a row.
    pub(super) fn number(&mut self, text: &str) -> i32 {
        match self.texts.known.get(text) {
            Some(&number) => number,
            None => self.texts.number(text.into()),
        }
    }

    pub(super) fn finish(self) -> Values {
        Values::Text {
            numbers: self.numbers,
            texts: self.texts.values,
        }
    }
}

/// A builder of a column of lists of texts.
#[derive(Debug, Default)]
pub(super) struct TextListColumn {
    numbers: Vec<i32>,
    lists: Distinct<Vec<i32>>,
    texts: TextColumn,
}

impl TextListColumn {
    pub(super) fn push(&mut self, number: i32) {
        self.numbers.push(number);
    }

    /// Returns the index of a list without adding a row.
    pub(super) fn number<'a>(&mut self, list: impl Iterator<Item = &'a str>) -> i32 {
        let list = list.map(|text| self.texts.number(text)).collect();
        self.lists.number(list)
    }

    pub(super) fn finish(self) -> Values {
        Values::TextLists {
            numbers: self.numbers,
            lists: self.lists.values,
            texts: self.texts.texts.values,
        }
    }
}

/// A builder of a column of lists of lists of integers.
#[derive(Debug, Default)]
pub(super) struct IntListColumn {
    numbers: Vec<i32>,
    lists: Distinct<Vec<Vec<i64>>>,
}

impl IntListColumn {
    pub(super) fn push(&mut self, number: i32) {
        self.numbers.push(number);
    }

    /// Returns the index of a list without adding a row.
    pub(super) fn number(&mut self, list: Vec<Vec<i64>>) -> i32 {
        self.lists.number(list)
    }

    pub(super) fn finish(self) -> Values {
        Values::IntLists {
            numbers: self.numbers,
            lists: self.lists.values,
        }
    }
}

/// Distinct values in the order in which they were first seen, with an index from value to position.
#[derive(Debug)]
struct Distinct<T> {
    values: Vec<T>,
    known: FxHashMap<T, i32>,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            known: FxHashMap::default(),
        }
    }
}

impl<T: Clone + Eq + Hash> Distinct<T> {
    fn number(&mut self, value: T) -> i32 {
        let values = &mut self.values;
        *self.known.entry(value).or_insert_with_key(|value| {
            values.push(value.clone());
            values.len() as i32 - 1
        })
    }
}

/// Returns texts as the dictionary-encoded values of a column.
pub fn text_values<'a>(texts: impl IntoIterator<Item = &'a str>) -> Values {
    let mut column = TextColumn::default();
    for text in texts {
        column.add(text);
    }
    column.finish()
}

/// Returns lists of texts as the dictionary-encoded values of a column.
pub fn text_list_values(lists: impl IntoIterator<Item = Vec<String>>) -> Values {
    let mut column = TextListColumn::default();
    for list in lists {
        let number = column.number(list.iter().map(String::as_str));
        column.push(number);
    }
    column.finish()
}

/// Returns lists of lists of integers as the dictionary-encoded values of a column.
pub fn int_list_values(lists: impl IntoIterator<Item = Vec<Vec<i64>>>) -> Values {
    let mut column = IntListColumn::default();
    for list in lists {
        let number = column.number(list);
        column.push(number);
    }
    column.finish()
}
