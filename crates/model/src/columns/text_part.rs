//! The packed parts of texts: numbers in as few bytes as they need, words of digits and letters in
//! four or six bits per character.

use std::fmt::Write as _;

/// The placeholders in patterns, one for each kind of part: a decimal number, a hexadecimal number,
/// a word of hexadecimal digits, a word of letters and digits, a UUID.
pub(crate) const PLACEHOLDERS: [u8; 5] = [DECIMAL, HEXADECIMAL, HEXADECIMAL_WORD, WORD, UNIQUE];
pub(crate) const DECIMAL: u8 = 0;
pub(crate) const HEXADECIMAL: u8 = 1;
pub(crate) const HEXADECIMAL_WORD: u8 = 2;
pub(crate) const WORD: u8 = 3;
pub(crate) const UNIQUE: u8 = 4;
/// The part of a placeholder character that was in the text itself. No other part begins with it.
pub(crate) const LITERAL: u8 = 0xff;

/// The digits of a UUID that a hyphen precedes.
pub(crate) const HYPHENS: [usize; 4] = [8, 12, 16, 20];

/// Appends a part to a text and returns the packed bytes behind it.
pub(crate) fn push_part<'a>(placeholder: u8, packed: &'a [u8], out: &mut String) -> &'a [u8] {
    match (placeholder, packed.split_first()) {
        (_, None) => packed,
        (_, Some((&LITERAL, rest))) => {
            out.push(char::from(placeholder));
            rest
        }
        (DECIMAL | HEXADECIMAL, Some(_)) => {
            let mut rest = packed;
            let number = take_number(&mut rest);
            let written = if placeholder == DECIMAL {
                write!(out, "{number}")
            } else {
                write!(out, "{number:x}")
            };
            written.expect("writing to a string never fails");
            rest
        }
        (_, Some((&length, rest))) => {
            let bits = bits_of(placeholder);
            let bytes = (usize::from(length) * bits as usize).div_ceil(8);
            let (word, rest) = rest.split_at(bytes.min(rest.len()));
            let (mut waiting, mut count) = (0_u32, 0);
            let mut word = word.iter();
            for place in 0..usize::from(length) {
                if placeholder == UNIQUE && HYPHENS.contains(&place) {
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

/// Returns the packed bytes behind a part.
pub(crate) fn skip_part(placeholder: u8, packed: &[u8]) -> &[u8] {
    match (placeholder, packed.split_first()) {
        (_, None) => packed,
        (_, Some((&LITERAL, rest))) => rest,
        (DECIMAL | HEXADECIMAL, Some(_)) => {
            let mut rest = packed;
            take_number(&mut rest);
            rest
        }
        (_, Some((&length, rest))) => {
            let bytes = (usize::from(length) * bits_of(placeholder) as usize).div_ceil(8);
            &rest[bytes.min(rest.len())..]
        }
    }
}

/// Appends a number as a variable-length integer with seven bits per byte. It never begins with
/// [`LITERAL`], since the numbers of parts are below 2^60.
pub(crate) fn push_number(packed: &mut Vec<u8>, mut number: u64) {
    // The first byte holds only six bits, which leaves it a bit to spare.
    let more = number >= 0x40;
    packed.push(number as u8 & 0x3f | u8::from(more) << 6);
    number >>= 6;
    while number > 0 {
        packed.push(number as u8 & 0x7f | u8::from(number >= 0x80) << 7);
        number >>= 7;
    }
}

/// Takes a number off the packed bytes.
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

/// Returns the bits per character of a word.
pub(crate) const fn bits_of(placeholder: u8) -> u32 {
    if placeholder == WORD { 6 } else { 4 }
}

/// Returns the code of a character in a word.
pub(crate) const fn value_of(byte: u8, placeholder: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'z' => byte - b'a' + 10,
        _ if placeholder == WORD => byte - b'A' + 36,
        _ => 0,
    }
}

/// Returns the character of a code.
const fn byte_of(value: u32) -> u8 {
    match value as u8 {
        value @ 0..=9 => b'0' + value,
        value @ 10..=35 => b'a' + value - 10,
        value => b'A' + value - 36,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
