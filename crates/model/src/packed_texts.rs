//! Many texts that differ in little but their numbers, in little memory.
//!
//! A text is held as its pattern, which many share, and its numbers: of `"id":"0x1f","size":512`
//! the pattern is what is left when `1f` and `512` are taken out.

use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::TextId;

/// Stand in a pattern where a number was taken out.
const DECIMAL: char = '\0';
const HEXADECIMAL: char = '\u{1}';
/// The number of a stand-in that was in the text itself.
const LITERAL: u64 = u64::MAX;
/// More digits may not fit into a number.
const MOST_DIGITS: usize = 15;

/// Texts by id.
#[derive(Clone, Debug, Default)]
pub struct PackedTexts {
    /// The patterns one behind another, and where each ends.
    patterns: String,
    ends: Vec<usize>,
    /// Patterns and texts by their hashes. Of two with one hash, only the first is found.
    pattern_ids: FxHashMap<u64, u32>,
    ids: FxHashMap<u64, TextId>,
    texts: Vec<Place>,
    /// The numbers of all texts, seven bits in each byte.
    numbers: Vec<u8>,
    scratch: Vec<u64>,
    pattern: String,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    pattern: u32,
    /// Where its numbers begin.
    numbers: u32,
}

impl PackedTexts {
    /// Returns the id of `text`, adding it at first sight; nothing when there is no room for it.
    pub fn intern(&mut self, text: &str) -> Option<TextId> {
        let hash = hash(text);
        if let Some(&id) = self.ids.get(&hash)
            && self.is(id, text)
        {
            return Some(id);
        }
        let id = self.add(text)?;
        self.ids.entry(hash).or_insert(id);
        Some(id)
    }

    /// Adds a text that is not expected to come again; nothing when there is no room for it.
    pub fn add(&mut self, text: &str) -> Option<TextId> {
        let id = u32::try_from(self.texts.len()).ok()?;
        let numbers = u32::try_from(self.numbers.len()).ok()?;
        self.split(text);
        let pattern = self.intern_pattern()?;
        self.texts.push(Place { pattern, numbers });
        for &number in &self.scratch {
            push_number(&mut self.numbers, number);
        }
        Some(TextId::from_raw(id))
    }

    /// Appends the text of `id` to `out`.
    ///
    /// # Panics
    /// When `id` is of another table.
    pub fn push_to(&self, id: TextId, out: &mut String) {
        let place = self.texts[id.index()];
        let mut numbers = &self.numbers[place.numbers as usize..];
        let mut pattern = self.pattern_text(place.pattern);
        while let Some(at) = pattern.find([DECIMAL, HEXADECIMAL]) {
            out.push_str(&pattern[..at]);
            let is_decimal = pattern.as_bytes()[at] == DECIMAL as u8;
            let written = match take_number(&mut numbers) {
                LITERAL => out.write_str(&pattern[at..=at]),
                number if is_decimal => write!(out, "{number}"),
                number => write!(out, "{number:x}"),
            };
            written.expect("a text takes all that is written");
            pattern = &pattern[at + 1..];
        }
        out.push_str(pattern);
    }

    /// Returns the text of `id`.
    ///
    /// # Panics
    /// When `id` is of another table.
    pub fn text(&self, id: TextId) -> String {
        let mut text = String::new();
        self.push_to(id, &mut text);
        text
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns about how many bytes all of it takes.
    pub fn bytes(&self) -> usize {
        const ENTRY: usize = 24;
        let maps = self.pattern_ids.len() + self.ids.len();
        let vectors = self.ends.len() + self.texts.len();
        self.patterns.len() + self.numbers.len() + vectors * size_of::<Place>() + maps * ENTRY
    }

    fn is(&self, id: TextId, text: &str) -> bool {
        self.text(id) == text
    }

    /// Takes the text apart, into its pattern and its numbers.
    fn split(&mut self, text: &str) {
        self.scratch.clear();
        self.pattern.clear();
        let bytes = text.as_bytes();
        let (mut begin, mut at) = (0, 0);
        while at < bytes.len() {
            let Some((length, stand_in, number)) = number_at(bytes, at) else {
                let is_zero = bytes[at] == b'0';
                let run = digits(bytes, at, u8::is_ascii_digit);
                // Of a run of digits that is too long, no part is a number by itself.
                at += if is_zero { 1 } else { run.max(1) };
                continue;
            };
            self.pattern.push_str(&text[begin..at]);
            self.pattern.push(stand_in);
            self.scratch.push(number);
            at += length;
            begin = at;
        }
        self.pattern.push_str(&text[begin..]);
    }

    fn intern_pattern(&mut self) -> Option<u32> {
        let hash = hash(&self.pattern);
        if let Some(&id) = self.pattern_ids.get(&hash)
            && self.pattern_text(id) == self.pattern
        {
            return Some(id);
        }
        let id = u32::try_from(self.ends.len()).ok()?;
        self.patterns.push_str(&self.pattern);
        self.ends.push(self.patterns.len());
        self.pattern_ids.entry(hash).or_insert(id);
        Some(id)
    }

    fn pattern_text(&self, id: u32) -> &str {
        let id = id as usize;
        let begin = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.patterns[begin..self.ends[id]]
    }
}

/// Returns the number that stands at a place, how long it is, and what stands in for it.
fn number_at(bytes: &[u8], at: usize) -> Option<(usize, char, u64)> {
    let first = bytes[at];
    for stand_in in [DECIMAL, HEXADECIMAL] {
        if first == stand_in as u8 {
            return Some((1, stand_in, LITERAL));
        }
    }
    let is_hexadecimal = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let (length, stand_in, base) = if bytes[..at].ends_with(b"0x") {
        (digits(bytes, at, is_hexadecimal), HEXADECIMAL, 16)
    } else {
        (digits(bytes, at, u8::is_ascii_digit), DECIMAL, 10)
    };
    // A zero in front would be lost: it stays in the pattern.
    if first == b'0' || !(1..=MOST_DIGITS).contains(&length) {
        return None;
    }
    let text = std::str::from_utf8(&bytes[at..at + length]).ok()?;
    Some((length, stand_in, u64::from_str_radix(text, base).ok()?))
}

fn digits(bytes: &[u8], at: usize, is_digit: impl Fn(&u8) -> bool) -> usize {
    let rest = &bytes[at..];
    rest.iter()
        .position(|byte| !is_digit(byte))
        .unwrap_or(rest.len())
}

fn push_number(numbers: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        numbers.push(number as u8 | 0x80);
        number >>= 7;
    }
    numbers.push(number as u8);
}

fn take_number(numbers: &mut &[u8]) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    while let Some((&byte, rest)) = numbers.split_first() {
        *numbers = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    number
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxBuildHasher.build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_that_differ_in_numbers_share_their_pattern() {
        let mut texts = PackedTexts::default();
        for number in 1..1000 {
            let text = format!("\"id\":\"0x{number:x}\",\"size\":{number},\"part\":0.0{number}");
            let id = texts.intern(&text).unwrap();
            assert_eq!(texts.text(id), text);
            assert_eq!(texts.intern(&text), Some(id));
        }
        assert_eq!((texts.len(), texts.ends.len()), (999, 1));
    }

    proptest! {
        #[test]
        fn any_text_comes_back(texts in prop::collection::vec("([0-9]{1,20}|0x[0-9a-g]{1,18}|[\\x00-\\x02é\",.]|0){0,8}", 0..9)) {
            let mut table = PackedTexts::default();
            let ids: Vec<_> = texts.iter().map(|text| table.intern(text).unwrap()).collect();
            for (text, id) in texts.iter().zip(ids) {
                prop_assert_eq!(&table.text(id), text);
            }
        }
    }
}
