//! A compact store for many texts that differ mostly in their numbers: the unknown fields of a
//! trace file, which the reader adds and the writers ask for.
//!
//! A text is held as a pattern, which many texts share, and its parts (see [`TextTemplate`]).
//! Nearly all texts of a trace are distinct, so interning them would not help; packed, those of
//! accelerator traces above 1 MB take 3 to 21 times less memory than plain ones with an offset each
//! (`cargo run -p mindprof --example kept_texts -- TRACE`). Reading three of these traces with
//! plain texts took 1.05, 1.15 and 1.38 times the instructions (callgrind): a text with a known
//! pattern is not validated again.

use std::hash::{BuildHasher, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::text_part::{PLACEHOLDERS, push_number, push_part, skip_part, take_number};
use crate::{TextId, TextTemplate};

/// Texts in packed form. The id of a text is the offset of its parts, so a text that is added twice
/// has two ids. There is no index by text: the reader remembers recent texts itself.
#[derive(Clone, Debug, Default)]
pub struct PackedTexts {
    /// The patterns, concatenated, and the end of each.
    patterns: String,
    ends: Vec<usize>,
    /// Patterns by hash; only the first of two with equal hashes is found.
    pattern_ids: FxHashMap<u64, PatternId>,
    /// For each text, the number of its pattern and its parts.
    packed: Vec<u8>,
    template: TextTemplate,
}

/// The number of a pattern that texts share. The reader resolves a pattern once and then adds texts
/// by their parts alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternId(u32);

impl PatternId {
    /// Returns the position of the pattern among all.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A piece of all texts with one pattern, such as the value behind a key. A reader that needs a few
/// numbers of many texts finds their places once for each pattern.
#[derive(Clone, Debug)]
pub struct TextPiece {
    pattern: PatternId,
    /// The placeholders before the piece.
    before: Vec<u8>,
    /// The piece of the pattern.
    bytes: Vec<u8>,
}

impl TextPiece {
    /// Returns the piece that begins at `begin` in a pattern and goes on as long as there are parts or
    /// ASCII characters that meet a condition.
    ///
    /// # Panics
    /// Panics if `begin` is behind the end of the pattern.
    pub fn find(
        (pattern, text): (PatternId, &str),
        begin: usize,
        is_inside: impl Fn(char) -> bool,
    ) -> Self {
        let is_part = |byte: &u8| PLACEHOLDERS.contains(byte);
        let (before, rest) = text.as_bytes().split_at(begin);
        let is_inside = |byte: &u8| is_part(byte) || byte.is_ascii() && is_inside((*byte).into());
        Self {
            pattern,
            before: before.iter().copied().filter(is_part).collect(),
            bytes: rest.iter().copied().take_while(is_inside).collect(),
        }
    }
}

impl PackedTexts {
    /// Adds a text. Returns `None` if there is no room for it.
    pub fn add(&mut self, text: &str) -> Option<TextId> {
        let mut template = std::mem::take(&mut self.template);
        template.split(text.as_bytes());
        let id = self
            .add_pattern(&template)
            .and_then(|pattern| self.add_parts(pattern, [template.packed()]));
        self.template = template;
        id
    }

    /// Adds the pattern of a text if it is new. Returns `None` if there is no room for it.
    pub fn add_pattern(&mut self, template: &TextTemplate) -> Option<PatternId> {
        let pattern = std::str::from_utf8(template.pattern()).ok()?;
        let hash = hash(pattern);
        if let Some(&id) = self.pattern_ids.get(&hash)
            && self.pattern(id) == pattern
        {
            return Some(id);
        }
        let id = PatternId(u32::try_from(self.ends.len()).ok()?);
        self.patterns.push_str(pattern);
        self.ends.push(self.patterns.len());
        self.pattern_ids.entry(hash).or_insert(id);
        Some(id)
    }

    /// Adds a text as a pattern and its packed parts. Returns `None` if there is no room for it.
    pub fn add_parts<'a>(
        &mut self,
        pattern: PatternId,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Option<TextId> {
        let id = u32::try_from(self.packed.len()).ok()?;
        push_number(&mut self.packed, u64::from(pattern.0));
        for part in parts {
            self.packed.extend_from_slice(part);
        }
        Some(TextId::from_raw(id))
    }

    /// Appends the text of `id` to `out`.
    ///
    /// # Panics
    /// Panics if `id` belongs to another table.
    pub fn push_to(&self, id: TextId, out: &mut String) {
        let mut packed = &self.packed[id.index()..];
        let mut pattern = self.pattern(PatternId(take_number(&mut packed) as u32));
        let is_placeholder =
            |character: char| PLACEHOLDERS.iter().any(|&s| char::from(s) == character);
        while let Some(at) = pattern.find(is_placeholder) {
            out.push_str(&pattern[..at]);
            packed = push_part(pattern.as_bytes()[at], packed, out);
            pattern = &pattern[at + 1..];
        }
        out.push_str(pattern);
    }

    /// Returns the pattern of the text of `id`, with control characters in the places of its parts.
    ///
    /// # Panics
    /// Panics if `id` belongs to another table.
    pub fn pattern_of(&self, id: TextId) -> (PatternId, &str) {
        let mut packed = &self.packed[id.index()..];
        let pattern = PatternId(take_number(&mut packed) as u32);
        (pattern, self.pattern(pattern))
    }

    /// Appends a piece of the text of `id` to `out`, without making up the rest of the text.
    ///
    /// # Panics
    /// Panics if `id` belongs to another table, or has another pattern than the piece.
    pub fn push_piece_to(&self, id: TextId, piece: &TextPiece, out: &mut String) {
        let mut packed = &self.packed[id.index()..];
        let pattern = PatternId(take_number(&mut packed) as u32);
        assert_eq!(pattern, piece.pattern, "a piece is one of its own pattern");
        for &placeholder in &piece.before {
            packed = skip_part(placeholder, packed);
        }
        for &byte in &piece.bytes {
            if PLACEHOLDERS.contains(&byte) {
                packed = push_part(byte, packed, out);
            } else {
                out.push(char::from(byte));
            }
        }
    }

    /// Returns the text of `id`.
    ///
    /// # Panics
    /// Panics if `id` belongs to another table.
    pub fn text(&self, id: TextId) -> String {
        let mut text = String::new();
        self.push_to(id, &mut text);
        text
    }

    /// Returns whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// Returns the approximate size of the store in bytes.
    pub fn bytes(&self) -> usize {
        // In a hash table that is half full, each entry takes its size twice.
        const PATTERN: usize = size_of::<usize>() + 2 * size_of::<(u64, PatternId, u8)>();
        self.patterns.len() + self.packed.len() + self.ends.len() * PATTERN
    }

    fn pattern(&self, id: PatternId) -> &str {
        let id = id.0 as usize;
        let begin = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.patterns[begin..self.ends[id]]
    }
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
            let id = texts.add(&text).unwrap();
            assert_eq!(texts.text(id), text);
        }
        assert_eq!(
            texts.ends.len(),
            1 + 99,
            "the short ones with a zero in front stay"
        );
    }

    #[test]
    fn a_piece_is_read_without_the_rest() {
        let mut texts = PackedTexts::default();
        let add = |texts: &mut PackedTexts, hash: &str, part: f64, rest: u64| {
            texts.add(&format!(
                "\"hash\":\"{hash}\",\"part\":{part},\"rest\":{rest}"
            ))
        };
        let first = add(&mut texts, "0x1f5f3e8a1", 12.5, 7).unwrap();
        let second = add(&mut texts, "0x2a", 1234.8, 12).unwrap();
        let pattern = texts.pattern_of(first);
        assert_eq!(pattern.0, texts.pattern_of(second).0);
        let begin = pattern.1.find("part\":").unwrap() + "part\":".len();
        let piece = TextPiece::find(pattern, begin, |c| c == '.');
        let mut found = String::new();
        texts.push_piece_to(first, &piece, &mut found);
        found.push(' ');
        texts.push_piece_to(second, &piece, &mut found);
        assert_eq!(found, "12.5 1234.8");
    }

    /// Packs random UUIDs and numbers: the result must take little more than their information
    /// content.
    #[test]
    fn what_is_kept_is_a_part_of_the_text() {
        let mut texts = PackedTexts::default();
        let (mut state, mut said) = (1_u64, 0);
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..10_000 {
            let (a, b) = (next(), next());
            let text = format!(
                "\"uuid\":\"{:08x}-{:04x}-{:04x}-{:04x}-{:012x}\",\"bytes\":{},\"rate\":0.{:017}",
                a >> 32,
                a >> 16 & 0xffff,
                a & 0xffff,
                b >> 48,
                b & 0xffff_ffff_ffff,
                next() >> 44,
                next() % 100_000_000_000_000_000,
            );
            let id = texts.add(&text).unwrap();
            assert_eq!(texts.text(id), text);
            said += text.len();
        }
        assert!(texts.bytes() < said * 2 / 5, "{} of {said}", texts.bytes());
    }

    proptest! {
        #[test]
        fn any_text_comes_back(texts in prop::collection::vec("([0-9]{1,20}|0x[0-9a-g]{1,18}|[0-9a-f]{3,9}|[0-9a-zA-Z]{9,15}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[\\x00-\\x05é\",.-]|0){0,8}", 0..9)) {
            let mut table = PackedTexts::default();
            let ids: Vec<_> = texts.iter().map(|text| table.add(text).unwrap()).collect();
            for (text, id) in texts.iter().zip(ids) {
                prop_assert_eq!(&table.text(id), text);
            }
        }
    }
}
