//! Integers as a trace writes them.

/// Returns the integer of a JSON number, zero for other JSON and for what does not fit.
pub(super) fn number_of<T: TryFrom<i128> + Default>(raw: &[u8]) -> T {
    integer_of(raw).unwrap_or_default()
}

/// Returns the integer of a JSON number, if it is one and fits.
pub(super) fn integer_of<T: TryFrom<i128>>(raw: &[u8]) -> Option<T> {
    let (is_negative, digits) = match raw.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, raw),
    };
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    let magnitude = if digits.len() < 19 {
        i128::from(decimal(digits)?)
    } else {
        let (high, low) = digits.split_at(digits.len() - 18);
        i128::from(decimal(high)?) * 1_000_000_000_000_000_000 + i128::from(decimal(low)?)
    };
    T::try_from(if is_negative { -magnitude } else { magnitude }).ok()
}

/// Returns the number of at most 18 decimal digits.
#[inline]
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let (head, tail) = match digits.split_last_chunk::<8>() {
        Some((head, tail)) => (head, eight_digits(*tail)?),
        None => (digits, 0),
    };
    let mut value = 0;
    for byte in head {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    if digits.len() < 8 {
        return Some(value);
    }
    Some(value * 100_000_000 + tail)
}

/// Returns the number of eight decimal digits: neighbours are joined to twos, fours and eight.
const fn eight_digits(digits: [u8; 8]) -> Option<u64> {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
    let values = u64::from_le_bytes(digits).wrapping_sub(ZEROS);
    // Of a digit, neither it nor it and six more reach into the upper half of its byte.
    let above = values | values.wrapping_add(0x0606_0606_0606_0606);
    if above & 0xf0f0_f0f0_f0f0_f0f0 != 0 {
        return None;
    }
    let twos = (values * 10 + (values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_fit_or_are_none() {
        assert_eq!(integer_of(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer_of::<u64>(b"18446744073709551616"), None);
        assert_eq!(integer_of(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer_of::<u32>(b"-1"), None);
        for text in ["", "-", "1.0", "1e3", "x", "\"1\"", "999999999999999999999"] {
            assert_eq!(integer_of::<i64>(text.as_bytes()), None, "{text}");
        }
        assert_eq!(number_of::<u32>(b"null"), 0);
    }

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
    }
}
