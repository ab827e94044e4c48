//! The texts of a page's data: each once, in the order of first use.

use rustc_hash::FxHashMap;

use super::markup::shown;

/// A table of texts. Number zero is the empty text.
#[derive(Debug)]
pub(super) struct Strings {
    numbers: FxHashMap<String, u32>,
    texts: Vec<String>,
}

impl Strings {
    pub(super) fn new() -> Self {
        let mut strings = Self {
            numbers: FxHashMap::default(),
            texts: Vec::new(),
        };
        strings.number("");
        strings
    }

    /// Returns the number of a text, as pages have it.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        let shown = shown(text);
        if let Some(&number) = self.numbers.get(shown.as_ref()) {
            return number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(shown.clone().into_owned());
        self.numbers.insert(shown.into_owned(), number);
        number
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        self.texts
    }
}
