//! Finds the tokens of a text that tell it from others: runs of letters and digits, and UUIDs.

use super::text_part::{HYPHENS, PLACEHOLDERS};

/// The length of a UUID.
pub(crate) const UNIQUE_LENGTH: usize = 36;

/// Returns the start and the digits of the UUID around the digit at `at`, the first one behind
/// `after`. Returns `None` if the digit is not part of one.
pub(crate) fn unique_around(text: &[u8], after: usize, at: usize) -> Option<(usize, [u8; 32])> {
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
pub(crate) struct Token {
    pub(crate) begin: usize,
    pub(crate) end: usize,
    pub(crate) digits: usize,
    /// The number of letters that are not hexadecimal digits.
    pub(crate) letters: usize,
}

impl Token {
    /// Returns the token around the digit at `at`, the first one behind `after`.
    #[inline]
    pub(crate) fn around(text: &[u8], after: usize, at: usize) -> Self {
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

/// Returns the position of the next digit or placeholder, scanning eight bytes at a time.
#[inline]
pub(crate) fn find(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let is_found = |byte: &u8| byte.is_ascii_digit() || PLACEHOLDERS.contains(byte);
    text[at..].iter().position(is_found).map(|found| at + found)
}

/// Sets the high bit of each byte that is a digit or a placeholder.
const fn marks(word: u64) -> u64 {
    const LOWS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let digits = word ^ u64::from_le_bytes([b'0'; 8]);
    let above_nine = ((digits & LOWS) + 0x7676_7676_7676_7676) | digits;
    let above_placeholders = ((word & LOWS) + 0x7b7b_7b7b_7b7b_7b7b) | word;
    !(above_nine & above_placeholders) & !LOWS
}
