//! Parses decimal digits, eight at a time.

/// Parses at most 18 decimal digits.
#[inline]
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    let (head, tail) = match digits.split_last_chunk::<8>() {
        Some((head, tail)) => (head, eight_digits(*tail)?),
        None => (digits, 0),
    };
    let mut value = 0;
    let mut above = 0;
    for byte in head {
        let digit = byte.wrapping_sub(b'0');
        above |= u64::from(digit > 9);
        value = value * 10 + u64::from(digit);
    }
    if above > 0 {
        return None;
    }
    if digits.len() < 8 {
        return Some(value);
    }
    Some(value * 100_000_000 + tail)
}

/// Parses exactly eight decimal digits.
const fn eight_digits(digits: [u8; 8]) -> Option<u64> {
    let values = u64::from_le_bytes(digits) ^ ZEROS;
    if outside_digits(values) != 0 {
        return None;
    }
    Some(join(values))
}

/// Returns the number of leading digits, if there are one to seven and at least eight bytes of
/// text.
#[inline]
pub(super) fn digits_in(text: &[u8]) -> Option<usize> {
    let values = u64::from_le_bytes(*text.first_chunk()?) ^ ZEROS;
    let bits = outside_digits(values).trailing_zeros();
    (8..64).contains(&bits).then_some((bits / 8) as usize)
}

/// Returns whether a text is a JSON number: no superfluous zeros in front, and digits on both sides
/// of the point.
pub(super) fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let Some((whole, text)) = leading_digits(text) else {
        return false;
    };
    if whole.len() > 1 && whole[0] == b'0' {
        return false;
    }
    let text = match text.strip_prefix(b".").map(leading_digits) {
        Some(Some((_, rest))) => rest,
        Some(None) => return false,
        None => text,
    };
    match text {
        [] => true,
        [b'e' | b'E', b'-' | b'+', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            leading_digits(exponent).is_some_and(|(_, rest)| rest.is_empty())
        }
        _ => false,
    }
}

/// Splits a text behind its leading digits. `None` if it has none.
fn leading_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    let end = end.unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// A number parsed from the start of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thousandths {
    pub(super) value: u64,
    /// The number of bytes it takes up.
    pub(super) length: usize,
}

/// Parses the number at the start of a text in thousandths, if it has at most 15 digits, at most
/// three after the point, and at least 32 bytes of text.
#[inline]
pub(super) fn thousandths(text: &[u8]) -> Option<Thousandths> {
    const NEAR: usize = 32;
    const SCALES: [u64; 4] = [1000, 100, 10, 1];
    let near = text.first_chunk::<NEAR>()?;
    let (first, mut length) = digits_at(near, 0);
    let mut whole = first;
    if length == 8 {
        let (next, count) = digits_at(near, 8);
        whole = whole * TENS[count] + next;
        length += count;
    }
    // A number with a superfluous zero in front is no JSON and takes the slow path.
    if !(1..16).contains(&length) || (near[0] == b'0' && length > 1) {
        return None;
    }
    let mut value = whole * 1000;
    if near[length] == b'.' {
        if let Some(fraction) = three_digits(near, length + 1) {
            let (value, length) = (value + fraction, length + 4);
            return Some(Thousandths { value, length });
        }
        let (fraction, count) = digits_at(near, length + 1);
        if !(1..=3).contains(&count) {
            return None;
        }
        value += fraction * SCALES[count];
        length += 1 + count;
    }
    Some(Thousandths { value, length })
}

/// Parses the digits at an offset, if there are exactly three.
#[inline]
fn three_digits(near: &[u8; 32], at: usize) -> Option<u64> {
    let word = near.get(at..at + 4)?.first_chunk()?;
    let values = u32::from_le_bytes(*word) ^ ZEROS as u32;
    let strange = outside_digits(u64::from(values)) as u32;
    let digit = |place: u32| u64::from(values >> (8 * place) & 0xf);
    (strange == 0x8000_0000).then(|| digit(0) * 100 + digit(1) * 10 + digit(2))
}

/// Parses the digits at an offset, at most eight, and returns their number too.
#[inline]
fn digits_at(near: &[u8; 32], at: usize) -> (u64, usize) {
    let word = near.get(at..at + 8).and_then(<[u8]>::first_chunk);
    let values = word.map_or(u64::MAX, |word| u64::from_le_bytes(*word) ^ ZEROS);
    let strange = outside_digits(values);
    if strange == 0 {
        return (join(values), 8);
    }
    let bits = strange.trailing_zeros() & !7;
    // Shifts zeros in front of the digits, so that there are always eight.
    let moved = (values << 1) << (63 - bits);
    (join(moved), (bits / 8) as usize)
}

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
const TENS: [u64; 9] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// Sets the high bit of each byte above nine. Bytes above the first such one may be wrong.
const fn outside_digits(values: u64) -> u64 {
    (values | values.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080
}

/// Joins the values of eight digits pairwise, three times.
const fn join(values: u64) -> u64 {
    let twos = (values.wrapping_mul(10).wrapping_add(values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100).wrapping_add(twos >> 16)) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_are_read_as_the_library_reads_them(text in "[0-9]{1,18}", spoilt in "[ -~]", at: usize) {
            prop_assert_eq!(decimal(text.as_bytes()), text.parse().ok());
            let mut bytes = text.into_bytes();
            let at = at % bytes.len();
            bytes[at] = spoilt.as_bytes()[0];
            let expected = spoilt.as_bytes()[0].is_ascii_digit();
            prop_assert_eq!(decimal(&bytes).is_some(), expected);
        }

        #[test]
        fn digits_end_where_they_do(digits in "[0-9]{0,9}", behind in "[^0-9]\\PC{8,9}") {
            let text = format!("{digits}{behind}");
            let expected = (1..8).contains(&digits.len()).then_some(digits.len());
            prop_assert_eq!(digits_in(text.as_bytes()), expected);
        }

        #[test]
        fn thousandths_end_where_the_number_does(
            whole in "[0-9]{0,17}",
            fraction in "(\\.[0-9]{0,4})?",
            behind in "[^0-9.]\\PC{32,40}",
        ) {
            let text = format!("{whole}{fraction}{behind}");
            let digits = fraction.trim_start_matches('.').len();
            let is_json = !whole.starts_with('0') || whole == "0";
            let is_short = (1..16).contains(&whole.len()) && (fraction.is_empty() || (1..4).contains(&digits));
            let is_plain = is_json && is_short;
            let expected = is_plain.then(|| Thousandths {
                value: format!("{whole}{:0<3}", fraction.trim_start_matches('.')).parse().unwrap(),
                length: whole.len() + fraction.len(),
            });
            prop_assert_eq!(thousandths(text.as_bytes()), expected);
        }
    }

    #[test]
    fn what_stands_at_the_end_is_left_to_others() {
        assert_eq!(thousandths(b"12.5,"), None);
        let text = [b"12.5,", &[b' '; 32][..]].concat();
        let (value, length) = (12_500, 4);
        assert_eq!(thousandths(&text), Some(Thousandths { value, length }));
    }
}
