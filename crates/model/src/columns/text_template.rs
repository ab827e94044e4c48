//! Splits a text into its pattern and its parts: the numbers and the words of digits in it.
//!
//! ```text
//! text      "id":"0x1f","size":512,"part":0.0625,"commit":"5f3e8a1"
//! pattern   "id":"0x#","size":#,"part":0.#,"commit":"#"
//! parts     1f          512        0625            5f3e8a1
//! ```

use super::text_part::{
    DECIMAL, HEXADECIMAL, HEXADECIMAL_WORD, LITERAL, PLACEHOLDERS, UNIQUE, WORD, bits_of,
    push_number, value_of,
};
use super::tokenize::{Token, UNIQUE_LENGTH, find, unique_around};

/// The most digits that always fit into a number.
const MOST_DECIMALS: usize = 18;
const MOST_HEXADECIMALS: usize = 15;
/// Shorter words of hexadecimal digits stay in the pattern, and so do longer words of any kind.
const SHORTEST_HEXADECIMAL_WORD: usize = 4;
const LONGEST_WORD: usize = 250;
/// The least length and the least number of digits of a word that is taken for an identifier.
const SHORTEST_WORD: usize = 12;
const FEWEST_DIGITS: usize = 4;

/// A text split into its pattern and its packed parts. One value is reused for many texts, so that
/// splitting does not allocate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTemplate {
    pattern: Vec<u8>,
    /// The packed parts, concatenated, and the end of each.
    packed: Vec<u8>,
    ends: Vec<u32>,
}

impl TextTemplate {
    /// Splits a text.
    pub fn of(text: &[u8]) -> Self {
        let mut template = Self::default();
        template.split(text);
        template
    }

    /// Splits another text, reusing the memory.
    pub fn split(&mut self, text: &[u8]) {
        self.pattern.clear();
        self.packed.clear();
        self.ends.clear();
        let mut begin = 0;
        while let Some(at) = find(text, begin) {
            if !text[at].is_ascii_digit() {
                self.pattern.extend_from_slice(&text[begin..=at]);
                self.push(&[LITERAL]);
                begin = at + 1;
                continue;
            }
            if let Some((place, digits)) = unique_around(text, begin, at) {
                self.pattern.extend_from_slice(&text[begin..place]);
                self.take_word(&digits, UNIQUE);
                begin = place + UNIQUE_LENGTH;
                continue;
            }
            let token = Token::around(text, begin, at);
            self.pattern.extend_from_slice(&text[begin..token.begin]);
            self.split_token(&text[token.begin..token.end], &token);
            begin = token.end;
        }
        self.pattern.extend_from_slice(&text[begin..]);
    }

    /// Returns the pattern: the text with placeholders for its parts.
    pub fn pattern(&self) -> &[u8] {
        &self.pattern
    }

    /// Returns all packed parts.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no parts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the packed part at `index`.
    ///
    /// # Panics
    /// Panics if there are fewer parts.
    pub fn part(&self, index: usize) -> &[u8] {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.packed[begin as usize..self.ends[index] as usize]
    }

    /// Returns a text with mostly the same pattern in which no two parts are equal. The pattern may
    /// differ if a number inside a word changes the kind of the word.
    pub fn distinct(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(2 * self.pattern.len());
        let mut number = 0;
        for &byte in &self.pattern {
            if !PLACEHOLDERS.contains(&byte) {
                text.push(byte);
                continue;
            }
            let is_literal = self.part(number) == [LITERAL];
            number += 1;
            let part = match byte {
                _ if is_literal => char::from(byte).to_string(),
                DECIMAL => number.to_string(),
                HEXADECIMAL => format!("{number:x}"),
                HEXADECIMAL_WORD => format!("0{number:x}abc"),
                UNIQUE => format!("{number:08x}-0000-0000-0000-000000000000"),
                _ => format!("{number:04}differently"),
            };
            text.extend_from_slice(part.as_bytes());
        }
        text
    }

    /// Adds a part.
    fn push(&mut self, packed: &[u8]) {
        self.packed.extend_from_slice(packed);
        self.ends.push(self.packed.len() as u32);
    }

    /// Splits a token.
    fn split_token(&mut self, text: &[u8], token: &Token) {
        if token.digits == text.len() {
            return self.split_digits(text);
        }
        if let Some(digits) = text.strip_prefix(b"0x")
            && token.letters == 1
            && !digits.is_empty()
        {
            self.pattern.extend_from_slice(b"0x");
            if digits[0] == b'0' || digits.len() > MOST_HEXADECIMALS {
                return self.take_word(digits, HEXADECIMAL_WORD);
            }
            let value = |digit: &u8| u64::from(value_of(*digit, HEXADECIMAL));
            let number = digits
                .iter()
                .fold(0, |number, digit| number << 4 | value(digit));
            return self.take_number(number, HEXADECIMAL);
        }
        if token.letters == 0 && text.len() >= SHORTEST_HEXADECIMAL_WORD {
            return self.take_word(text, HEXADECIMAL_WORD);
        }
        if text.len() >= SHORTEST_WORD && token.digits >= FEWEST_DIGITS {
            return self.take_word(text, WORD);
        }
        for piece in text.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
            if piece[0].is_ascii_digit() && piece[0] != b'0' {
                self.split_digits(piece);
            } else {
                self.pattern.extend_from_slice(piece);
            }
        }
    }

    fn split_digits(&mut self, digits: &[u8]) {
        if digits[0] != b'0' && digits.len() <= MOST_DECIMALS {
            let value = |digit: &u8| u64::from(digit - b'0');
            let number = digits
                .iter()
                .fold(0, |number, digit| number * 10 + value(digit));
            self.take_number(number, DECIMAL);
        } else if digits.len() < SHORTEST_HEXADECIMAL_WORD {
            // A number would lose its leading zero; such texts are rare.
            self.pattern.extend_from_slice(digits);
        } else {
            self.take_word(digits, HEXADECIMAL_WORD);
        }
    }

    fn take_number(&mut self, number: u64, placeholder: u8) {
        self.pattern.push(placeholder);
        push_number(&mut self.packed, number);
        self.ends.push(self.packed.len() as u32);
    }

    fn take_word(&mut self, text: &[u8], placeholder: u8) {
        if text.len() > LONGEST_WORD {
            self.pattern.extend_from_slice(text);
            return;
        }
        self.pattern.push(placeholder);
        self.packed.push(text.len() as u8);
        let bits = bits_of(placeholder);
        let (mut waiting, mut count) = (0_u32, 0);
        for &byte in text {
            waiting |= u32::from(value_of(byte, placeholder)) << count;
            count += bits;
            while count >= 8 {
                self.packed.push(waiting as u8);
                waiting >>= 8;
                count -= 8;
            }
        }
        if count > 0 {
            self.packed.push(waiting as u8);
        }
        self.ends.push(self.packed.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_distinct_text_has_the_same_pattern() {
        let text =
            "\"a\":1,\"b\":1.0625e-05,\"c\":\"0x1f 550e8400-e29b\",\"d\":[1,1,1],\"e\":\"\u{2}\"";
        let template = TextTemplate::of(text.as_bytes());
        let distinct = TextTemplate::of(&template.distinct());
        assert_eq!(distinct.pattern(), template.pattern());
        assert_eq!(distinct.len(), template.len());
    }

    #[test]
    fn numbers_and_words_of_digits_are_taken_out() {
        for (text, pattern) in [
            ("\"size\":512,\"part\":0.25", "\"size\":\0,\"part\":0.\0"),
            ("0.0625 0x1f 0x00ff 0x", "0.\u{2} 0x\u{1} 0x\u{2} 0x"),
            ("550e8400-e29b-11d4", "\u{2}-\u{2}-\u{2}"),
            ("\"abcdefab-cdef-11d4-a716-446655440000\"", "\"\u{4}\""),
            (
                "a-550e8400-e29b-11d4-a716-446655440000",
                "a-\u{2}-\u{2}-\u{2}-\u{2}-\0",
            ),
            ("C9927B96FA2043DE conv2d_3", "\u{3} conv\0d_\0"),
            ("007 deadbeef a1", "007 deadbeef a\0"),
        ] {
            let template = TextTemplate::of(text.as_bytes());
            assert_eq!(
                std::str::from_utf8(template.pattern()),
                Ok(pattern),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_two_parts_of_a_distinct_text_are_alike(
            text in "([0-9]{1,20}|0x[0-9a-g]{1,18}|[0-9a-f]{3,9}|[0-9a-zA-Z]{9,15}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[\\x00-\\x05é\",.-]|0){0,9}"
        ) {
            let template = TextTemplate::of(text.as_bytes());
            let distinct = TextTemplate::of(&template.distinct());
            // A number inside a word may change the kind of the word.
            for index in 0..distinct.len() {
                let is_alike = |other: &usize| distinct.part(*other) == distinct.part(index);
                let alike: Vec<_> = (0..distinct.len()).filter(is_alike).collect();
                prop_assert!(alike == [index] || distinct.part(index) == [LITERAL]);
            }
        }
    }
}
