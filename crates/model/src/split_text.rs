//! A text taken apart: its pattern, and the numbers and words of digits that stand in it.
//!
//! ```text
//! text      "id":"0x1f","size":512,"part":0.0625,"commit":"5f3e8a1"
//! pattern   "id":"0x#","size":#,"part":0.#,"commit":"#"
//! parts     1f          512        0625            5f3e8a1
//! ```

use std::fmt::Write as _;

/// Stand in a pattern where a part was taken out: a number, one of hexadecimal digits, a word of
/// hexadecimal digits, a word of letters and digits, a universally unique identifier.
pub(crate) const STAND_INS: [u8; 5] = [DECIMAL, HEXADECIMAL, HEXADECIMAL_WORD, WORD, UNIQUE];
pub(crate) const DECIMAL: u8 = 0;
pub(crate) const HEXADECIMAL: u8 = 1;
pub(crate) const HEXADECIMAL_WORD: u8 = 2;
pub(crate) const WORD: u8 = 3;
pub(crate) const UNIQUE: u8 = 4;
/// Stands for a stand-in that was in the text itself: no part begins with it.
pub(crate) const LITERAL: u8 = 0xff;

/// More digits may not fit into a number.
const MOST_DECIMALS: usize = 18;
const MOST_HEXADECIMALS: usize = 15;
/// Shorter words of hexadecimal digits stay in the pattern, and so do longer ones.
const SHORTEST_HEXADECIMAL_WORD: usize = 4;
const LONGEST_WORD: usize = 250;
/// What a word of letters and digits needs in order to be taken for one that tells things apart.
const SHORTEST_WORD: usize = 12;
const FEWEST_DIGITS: usize = 4;
/// How long a universally unique identifier is, and before which of its digits a hyphen stands.
const UNIQUE_LENGTH: usize = 36;
const HYPHENS: [usize; 4] = [8, 12, 16, 20];

/// A text taken apart. It is made to be used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitText {
    pattern: Vec<u8>,
    /// The parts one behind another, packed, and where each ends.
    packed: Vec<u8>,
    ends: Vec<u32>,
}

impl SplitText {
    /// Takes a text apart.
    pub fn of(text: &[u8]) -> Self {
        let mut split = Self::default();
        split.split(text);
        split
    }

    /// Takes another text apart.
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
            let run = Run::around(text, begin, at);
            self.pattern.extend_from_slice(&text[begin..run.begin]);
            self.split_run(&text[run.begin..run.end], &run);
            begin = run.end;
        }
        self.pattern.extend_from_slice(&text[begin..]);
    }

    /// Returns what is left of the text without its parts.
    pub fn pattern(&self) -> &[u8] {
        &self.pattern
    }

    /// Returns all parts as they are packed.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no part.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns a part as it is packed.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn part(&self, index: usize) -> &[u8] {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.packed[begin as usize..self.ends[index] as usize]
    }

    /// Returns a text in which no two parts are alike, mostly with the same pattern: a number within
    /// a word may make another kind of word of it.
    pub fn distinct(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(2 * self.pattern.len());
        let mut number = 0;
        for &byte in &self.pattern {
            if !STAND_INS.contains(&byte) {
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

    /// Takes a run of letters and digits apart.
    fn split_run(&mut self, text: &[u8], run: &Run) {
        if run.digits == text.len() {
            return self.split_digits(text);
        }
        if let Some(digits) = text.strip_prefix(b"0x")
            && run.letters == 1
            && !digits.is_empty()
        {
            self.pattern.extend_from_slice(b"0x");
            if digits[0] == b'0' || digits.len() > MOST_HEXADECIMALS {
                return self.take_word(digits, HEXADECIMAL_WORD);
            }
            let value = |digit: &u8| u64::from(hexadecimal_value(*digit));
            let number = digits
                .iter()
                .fold(0, |number, digit| number << 4 | value(digit));
            return self.take_number(number, HEXADECIMAL);
        }
        if run.letters == 0 && text.len() >= SHORTEST_HEXADECIMAL_WORD {
            return self.take_word(text, HEXADECIMAL_WORD);
        }
        if text.len() >= SHORTEST_WORD && run.digits >= FEWEST_DIGITS {
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
            // A zero in front would be lost: there are few such.
            self.pattern.extend_from_slice(digits);
        } else {
            self.take_word(digits, HEXADECIMAL_WORD);
        }
    }

    fn take_number(&mut self, number: u64, stand_in: u8) {
        self.pattern.push(stand_in);
        push_number(&mut self.packed, number);
        self.ends.push(self.packed.len() as u32);
    }

    fn take_word(&mut self, text: &[u8], stand_in: u8) {
        if text.len() > LONGEST_WORD {
            self.pattern.extend_from_slice(text);
            return;
        }
        self.pattern.push(stand_in);
        self.packed.push(text.len() as u8);
        let bits = bits_of(stand_in);
        let (mut waiting, mut count) = (0_u32, 0);
        for &byte in text {
            waiting |= u32::from(value_of(byte, stand_in)) << count;
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

/// Appends a part to a text, and returns what is packed behind it.
pub(crate) fn push_part<'a>(stand_in: u8, packed: &'a [u8], out: &mut String) -> &'a [u8] {
    match (stand_in, packed.split_first()) {
        (_, None) => packed,
        (_, Some((&LITERAL, rest))) => {
            out.push(char::from(stand_in));
            rest
        }
        (DECIMAL | HEXADECIMAL, Some(_)) => {
            let mut rest = packed;
            let number = take_number(&mut rest);
            let written = if stand_in == DECIMAL {
                write!(out, "{number}")
            } else {
                write!(out, "{number:x}")
            };
            written.expect("a text takes all that is written");
            rest
        }
        (_, Some((&length, rest))) => {
            let bits = bits_of(stand_in);
            let bytes = (usize::from(length) * bits as usize).div_ceil(8);
            let (word, rest) = rest.split_at(bytes.min(rest.len()));
            let (mut waiting, mut count) = (0_u32, 0);
            let mut word = word.iter();
            for place in 0..usize::from(length) {
                if stand_in == UNIQUE && HYPHENS.contains(&place) {
                    out.push('-');
                }
                if count < bits {
                    waiting |= u32::from(word.next().copied().unwrap_or(0)) << count;
                    count += 8;
                }
                out.push(char::from(byte_of(waiting & ((1 << bits) - 1))));
                waiting >>= bits;
                count -= bits;
            }
            rest
        }
    }
}

/// Appends a number, seven bits in each byte. What it begins with is not [`LITERAL`]: numbers of
/// parts are below 2^60.
pub(crate) fn push_number(packed: &mut Vec<u8>, mut number: u64) {
    // The lowest six bits come by themselves, so that the first byte has a bit to spare.
    let more = number >= 0x40;
    packed.push(number as u8 & 0x3f | u8::from(more) << 6);
    number >>= 6;
    while number > 0 {
        packed.push(number as u8 & 0x7f | u8::from(number >= 0x80) << 7);
        number >>= 7;
    }
}

/// Takes a number off what is packed.
pub(crate) fn take_number(packed: &mut &[u8]) -> u64 {
    let mut take = || {
        let (&byte, rest) = packed.split_first()?;
        *packed = rest;
        Some(byte)
    };
    let first = take().unwrap_or(0);
    let mut number = u64::from(first & 0x3f);
    let mut shift = 6;
    let mut more = first & 0x40 != 0;
    while more && shift < 64 {
        let byte = take().unwrap_or(0);
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        more = byte >= 0x80;
    }
    number
}

const fn bits_of(stand_in: u8) -> u32 {
    if stand_in == WORD { 6 } else { 4 }
}

const fn value_of(byte: u8, stand_in: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'z' => byte - b'a' + 10,
        _ if stand_in == WORD => byte - b'A' + 36,
        _ => 0,
    }
}

const fn hexadecimal_value(byte: u8) -> u8 {
    value_of(byte, HEXADECIMAL)
}

const fn byte_of(value: u32) -> u8 {
    match value as u8 {
        value @ 0..=9 => b'0' + value,
        value @ 10..=35 => b'a' + value - 10,
        value => b'A' + value - 36,
    }
}

/// Returns where the identifier begins in which a digit is the first one behind `after`, if it stands
/// in one, and the digits of that.
fn unique_around(text: &[u8], after: usize, at: usize) -> Option<(usize, [u8; 32])> {
    let is_inside = |byte: &&u8| matches!(byte, b'a'..=b'f' | b'-');
    let before = text[after..at].iter().rev();
    let begin = at - before.take_while(is_inside).count();
    let mut digits = [0; 32];
    let mut rest = text.get(begin..begin + UNIQUE_LENGTH)?.iter();
    for (place, digit) in digits.iter_mut().enumerate() {
        if HYPHENS.contains(&place) {
            rest.next().filter(|&&byte| byte == b'-')?;
        }
        *digit = *rest.next()?;
        matches!(digit, b'0'..=b'9' | b'a'..=b'f').then_some(())?;
    }
    let is_apart = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let is_whole = is_apart(text[..begin].last()) && is_apart(text.get(begin + UNIQUE_LENGTH));
    is_whole.then_some((begin, digits))
}

/// A run of letters and digits.
struct Run {
    begin: usize,
    end: usize,
    digits: usize,
    /// How many are no hexadecimal digits.
    letters: usize,
}

impl Run {
    /// Returns the run around a digit, which is the first one behind `after`.
    #[inline]
    fn around(text: &[u8], after: usize, at: usize) -> Self {
        let before = text[after..at].iter().rev();
        let begin = at - before.take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (mut end, mut digits, mut letters) = (begin, 0, 0);
        for &byte in &text[begin..] {
            match byte {
                b'0'..=b'9' => digits += 1,
                b'a'..=b'f' => {}
                b'g'..=b'z' | b'A'..=b'Z' => letters += 1,
                _ => break,
            }
            end += 1;
        }
        Self {
            begin,
            end,
            digits,
            letters,
        }
    }
}

/// Returns the place of the next digit or stand-in, eight bytes at a time.
#[inline]
fn find(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let is_found = |byte: &u8| byte.is_ascii_digit() || STAND_INS.contains(byte);
    text[at..].iter().position(is_found).map(|found| at + found)
}

/// Sets the high bit of each byte that is a digit or a stand-in.
const fn marks(word: u64) -> u64 {
    const LOWS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let digits = word ^ u64::from_le_bytes([b'0'; 8]);
    let above_nine = ((digits & LOWS) + 0x7676_7676_7676_7676) | digits;
    let above_stand_ins = ((word & LOWS) + 0x7b7b_7b7b_7b7b_7b7b) | word;
    !(above_nine & above_stand_ins) & !LOWS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_distinct_text_has_the_same_pattern() {
        let text =
            "\"a\":1,\"b\":1.0625e-05,\"c\":\"0x1f 550e8400-e29b\",\"d\":[1,1,1],\"e\":\"\u{2}\"";
        let split = SplitText::of(text.as_bytes());
        let distinct = SplitText::of(&split.distinct());
        assert_eq!(distinct.pattern(), split.pattern());
        assert_eq!(distinct.len(), split.len());
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
            let split = SplitText::of(text.as_bytes());
            assert_eq!(std::str::from_utf8(split.pattern()), Ok(pattern), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_two_parts_of_a_distinct_text_are_alike(
            text in "([0-9]{1,20}|0x[0-9a-g]{1,18}|[0-9a-f]{3,9}|[0-9a-zA-Z]{9,15}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[\\x00-\\x05é\",.-]|0){0,9}"
        ) {
            let split = SplitText::of(text.as_bytes());
            let distinct = SplitText::of(&split.distinct());
            // A number within a word may make another kind of word of it.
            for index in 0..distinct.len() {
                let is_alike = |other: &usize| distinct.part(*other) == distinct.part(index);
                let alike: Vec<_> = (0..distinct.len()).filter(is_alike).collect();
                prop_assert!(alike == [index] || distinct.part(index) == [LITERAL]);
            }
        }

        #[test]
        fn numbers_come_back(numbers: Vec<u64>) {
            let mut packed = Vec::new();
            for &number in &numbers {
                push_number(&mut packed, number);
            }
            let mut rest = packed.as_slice();
            let found: Vec<_> = numbers.iter().map(|_| take_number(&mut rest)).collect();
            prop_assert_eq!(found, numbers);
        }
    }
}
