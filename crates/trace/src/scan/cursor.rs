//! A cursor over a window of JSON text, with methods to pass values.
//!
//! It accepts all of JSON and, inside values that are only skipped, slightly more.

use super::PrefixText;
use super::digits::{digits_in, is_number, thousandths};
use super::value_end::{IS_WORD, container_end, plain_number, string_end, word_end};

/// The reason why a cursor cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The window ends before the value does.
    More,
    /// Something else was expected at the position of the cursor.
    Bad(&'static str),
    /// The cursor has passed valid JSON, but not of the expected kind.
    Stranger(&'static str),
}

/// The result of a scan: a value, or the reason why there is none.
pub(crate) type Scan<T> = Result<T, Stop>;

/// A position in a window of JSON text.
///
/// Scanners create one per window and report how far it got, so that the source can drop that text.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'w> {
    bytes: &'w [u8],
    at: usize,
    /// The number of values passed that are digits, but no JSON: `010` and `10.`.
    bad_numbers: u64,
}

impl<'w> Cursor<'w> {
    pub(crate) const fn new(bytes: &'w [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            bad_numbers: 0,
        }
    }

    /// Returns the position in the window.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Returns the text passed since position `from`.
    pub(crate) fn since(&self, from: usize) -> &'w [u8] {
        &self.bytes[from..self.at]
    }

    /// Returns all text passed so far.
    pub(crate) fn passed(&self) -> &'w [u8] {
        &self.bytes[..self.at]
    }

    /// Returns how many values were numbers in a form that JSON does not have, and forgets them.
    /// Values inside containers that are skipped as a whole are not looked at.
    pub(crate) fn take_bad_numbers(&mut self) -> u64 {
        std::mem::take(&mut self.bad_numbers)
    }

    /// Moves back to an earlier position.
    pub(crate) fn back_to(&mut self, at: usize) {
        self.at = self.at.min(at);
    }

    /// Skips white space and returns the next byte without passing it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Scan<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Stop::More)
    }

    /// Passes one byte that was peeked at.
    pub(crate) const fn pass(&mut self) {
        self.at += 1;
    }

    /// Passes `text` if it comes next.
    #[inline]
    pub(crate) fn pass_text(&mut self, text: &[u8]) -> bool {
        let end = self.at + text.len();
        let comes = self
            .bytes
            .get(self.at..end)
            .is_some_and(|next| is_equal(next, text));
        if comes {
            self.at = end;
        }
        comes
    }

    /// Passes the text of a prefix if it comes next.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is most of what reading a trace is"
    )]
    pub(crate) fn pass_prefix(&mut self, text: &PrefixText) -> bool {
        let comes = text.begins(&self.bytes[self.at..]);
        if comes {
            self.at += text.bytes().len();
        }
        comes
    }

    /// Skips white space and passes `byte`.
    pub(crate) fn expect(&mut self, byte: u8, what: &'static str) -> Scan<()> {
        if self.peek()? != byte {
            return Err(Stop::Bad(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Passes everything up to the next `byte`, or to the end of the window.
    pub(crate) fn seek(&mut self, byte: u8) -> bool {
        let found = memchr::memchr(byte, &self.bytes[self.at..]);
        self.at += found.unwrap_or(self.bytes.len() - self.at);
        found.is_some()
    }

    /// Passes the next string and returns it with its quotes.
    #[inline]
    pub(crate) fn string(&mut self) -> Scan<&'w [u8]> {
        if self.peek()? != b'"' {
            return Err(Stop::Bad("expected a string"));
        }
        let begin = self.at;
        self.at = string_end(self.bytes, begin + 1).ok_or(Stop::More)?;
        Ok(&self.bytes[begin..self.at])
    }

    /// Passes the next value and returns its text.
    #[inline]
    pub(crate) fn value(&mut self) -> Scan<&'w [u8]> {
        let rest = &self.bytes[self.at..];
        // Most values are short numbers.
        if let Some(length) = digits_in(rest)
            && let Some((number, [behind, ..])) = rest.split_at_checked(length)
            && !IS_WORD[usize::from(*behind)]
        {
            self.at += length;
            self.bad_numbers += u64::from(rest[0] == b'0' && length > 1);
            return Ok(number);
        }
        self.longer_value()
    }

    fn longer_value(&mut self) -> Scan<&'w [u8]> {
        match plain_number(&self.bytes[self.at..]) {
            Some(length) => {
                let begin = self.at;
                self.at += length;
                let number = &self.bytes[begin..self.at];
                self.bad_numbers += u64::from(is_bad_number(number));
                Ok(number)
            }
            None => self.any_value(),
        }
    }

    /// Passes the next number and returns it in thousandths, if it has a plain form.
    #[inline]
    pub(crate) fn thousandths(&mut self) -> Option<u64> {
        let rest = &self.bytes[self.at..];
        let found = thousandths(rest)?;
        if IS_WORD[usize::from(rest[found.length])] {
            return None;
        }
        self.at += found.length;
        Some(found.value)
    }

    fn any_value(&mut self) -> Scan<&'w [u8]> {
        let first = self.peek()?;
        let begin = self.at;
        self.at = match first {
            b'"' => string_end(self.bytes, begin + 1),
            b'{' | b'[' => container_end(self.bytes, begin),
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => word_end(self.bytes, begin),
            _ => return Err(Stop::Bad("expected a value")),
        }
        .ok_or(Stop::More)?;
        let value = &self.bytes[begin..self.at];
        if matches!(first, b'-' | b'0'..=b'9') {
            self.bad_numbers += u64::from(is_bad_number(value));
        }
        Ok(value)
    }
}

/// Returns whether a text consists of the characters of numbers, but is not a JSON number.
fn is_bad_number(text: &[u8]) -> bool {
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
    !is_number(text) && text.iter().all(is_of_number)
}

/// Compares two texts. Most are short, so that a call to `memcmp` would cost more than the
/// comparison.
#[inline]
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    const LONG: usize = 64;
    let length = other.len();
    if !(8..LONG).contains(&length) || one.len() != length {
        return one == other;
    }
    let (words, _) = one.as_chunks::<8>();
    let (others, _) = other.as_chunks::<8>();
    let mut pairs = words.iter().zip(others);
    // The last word overlaps the one before it.
    pairs.all(|(word, other)| is_equal_word(*word, *other))
        && is_equal_word(
            *one.last_chunk().unwrap_or(&[0; 8]),
            *other.last_chunk().unwrap_or(&[0; 8]),
        )
}

const fn is_equal_word(one: [u8; 8], other: [u8; 8]) -> bool {
    u64::from_ne_bytes(one) == u64::from_ne_bytes(other)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn value_of(text: &str) -> Scan<&str> {
        let value = Cursor::new(text.as_bytes()).value()?;
        Ok(std::str::from_utf8(value).expect("cut at ASCII"))
    }

    #[test]
    fn values_end_where_they_end() {
        for (text, value) in [
            ("12.5e-3,", "12.5e-3"),
            (" \n\t\"a\\\"b\", 1", "\"a\\\"b\""),
            ("\"\\\\\"x", "\"\\\\\""),
            ("[1,[\"]\",{\"}\":2}]],", "[1,[\"]\",{\"}\":2}]]"),
            ("{}]", "{}"),
            ("NaN}", "NaN"),
            ("null\n", "null"),
            ("[\"\u{2}\\u0002\"] ", "[\"\u{2}\\u0002\"]"),
        ] {
            assert_eq!(value_of(text), Ok(value));
        }
    }

    #[test]
    fn numbers_that_are_no_json_are_counted() {
        for (text, count) in [
            ("10,", 0),
            ("0,", 0),
            ("-0.5e+10,", 0),
            ("0.25,                              ", 0),
            ("NaN,", 0),
            ("-Infinity,", 0),
            ("010,", 1),
            ("010,                               ", 1),
            ("10.,                               ", 1),
            ("-01.5,", 1),
            ("1.e5,", 1),
            ("1e,", 1),
            ("00000000000000000001,              ", 1),
        ] {
            let mut cursor = Cursor::new(text.as_bytes());
            assert_eq!(cursor.value().map(<[u8]>::len), Ok(text.find(',').unwrap()));
            assert_eq!(cursor.take_bad_numbers(), count, "{text}");
            assert_eq!(cursor.take_bad_numbers(), 0);
        }
        let mut cursor = Cursor::new(b"010.5,                                ");
        assert_eq!(cursor.thousandths(), None);
    }

    #[test]
    fn what_is_not_whole_wants_more() {
        for text in [
            "",
            "  ",
            "\"a",
            "\"a\\",
            "\"a\\\"",
            "[1, 2",
            "{\"a\": [}",
            "12",
        ] {
            assert_eq!(value_of(text), Err(Stop::More), "{text}");
        }
        assert!(matches!(value_of("}"), Err(Stop::Bad(_))));
    }

    proptest! {
        #[test]
        fn any_string_is_passed_whole(text: String, behind in "[a-z\"\\\\ ]{0,9}") {
            let string = serde_json::to_string(&text).unwrap();
            let whole = format!("{string}{behind}");
            prop_assert_eq!(Cursor::new(whole.as_bytes()).string(), Ok(string.as_bytes()));
        }

        #[test]
        fn any_list_is_passed_whole(texts in vec(vec(any::<String>(), 0..6), 0..6)) {
            let list = serde_json::to_string(&texts).unwrap();
            let whole = format!("{list}]");
            prop_assert_eq!(Cursor::new(whole.as_bytes()).value(), Ok(list.as_bytes()));
        }
    }
}
