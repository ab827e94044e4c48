//! Integers in the text of a trace.

use crate::scan::decimal;

/// Parses a JSON integer. Zero if it is not an integer or does not fit.
#[inline]
pub(super) fn number_of<T: TryFrom<i128> + Default>(raw: &[u8]) -> T {
    integer_of(raw).unwrap_or_default()
}

/// Parses a JSON integer. `None` if it is not an integer or does not fit.
#[inline]
pub(super) fn integer_of<T: TryFrom<i128>>(raw: &[u8]) -> Option<T> {
    if raw.is_empty() {
        return None;
    }
    // Most are short and need no wide arithmetic.
    if raw.len() < 8
        && let Some(number) = decimal(raw)
    {
        return T::try_from(i128::from(number)).ok();
    }
    longer_integer_of(raw)
}

/// Returns whether a JSON value is an integer of any size.
pub(super) fn is_integer(raw: &[u8]) -> bool {
    let digits = raw.strip_prefix(b"-").unwrap_or(raw);
    let digits = without_point(digits);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn longer_integer_of<T: TryFrom<i128>>(raw: &[u8]) -> Option<T> {
    let (is_negative, digits) = match raw.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, raw),
    };
    let digits = without_point(digits);
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

/// Returns digits without a point behind them, which is not JSON and counts as a repair.
fn without_point(digits: &[u8]) -> &[u8] {
    digits.strip_suffix(b".").unwrap_or(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_fit_or_are_none() {
        assert_eq!(integer_of(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer_of::<u64>(b"18446744073709551616"), None);
        assert_eq!(integer_of(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer_of::<u32>(b"-1"), None);
        assert_eq!(
            (integer_of(b"010"), integer_of(b"10.")),
            (Some(10), Some(10))
        );
        for text in ["", "-", "1.0", "1e3", "x", "\"1\"", "999999999999999999999"] {
            assert_eq!(integer_of::<i64>(text.as_bytes()), None, "{text}");
        }
        assert_eq!(number_of::<u32>(b"null"), 0);
    }
}
