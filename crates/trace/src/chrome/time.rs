//! Times in a trace: decimal microseconds with three decimals, relative to a base time.
//!
//! They are parsed and formatted as text, because a 64-bit float cannot represent the nanoseconds
//! of a date.

use crate::scan::{Cursor, Scan, decimal};

/// The length in seconds of the intervals whose starts are base times: three months.
const INTERVAL_SECONDS: u64 = 7_889_238;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Returns the start of the interval that contains a time since the Unix epoch.
pub(super) const fn base_ns(unix_ns: u64) -> u64 {
    let interval_ns = INTERVAL_SECONDS * NANOS_PER_SECOND;
    unix_ns / interval_ns * interval_ns
}

/// The time that a JSON value states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stated {
    /// A number, in nanoseconds.
    Nanos(i64),
    /// A number in quotes, in nanoseconds.
    NanosInText(i64),
    /// `NaN` or `Infinity`, with or without quotes.
    NotANumber,
    /// No time that fits into nanoseconds.
    Nothing,
}

impl Stated {
    /// Passes the next value and parses it.
    #[inline]
    pub(super) fn scan(cursor: &mut Cursor<'_>) -> Scan<Self> {
        match cursor.thousandths() {
            Some(nanoseconds) => Ok(Self::Nanos(nanoseconds as i64)),
            None => Ok(Self::read(cursor.value()?)),
        }
    }

    /// Parses decimal microseconds.
    pub(super) fn read(raw: &[u8]) -> Self {
        if let Some(nanoseconds) = parse_plain(raw) {
            return Self::Nanos(nanoseconds);
        }
        let Ok(text) = std::str::from_utf8(raw) else {
            return Self::Nothing;
        };
        if let Some(nanoseconds) = parse_microseconds(text) {
            return Self::Nanos(nanoseconds);
        }
        let inside = text.trim_matches('"').trim();
        if let Some(nanoseconds) = parse_microseconds(inside) {
            return Self::NanosInText(nanoseconds);
        }
        let word = inside.trim_start_matches(['-', '+']).to_ascii_lowercase();
        match word.as_str() {
            "nan" | "inf" | "infinity" => Self::NotANumber,
            _ => Self::Nothing,
        }
    }
}

/// Parses decimal microseconds into nanoseconds, rounded to the nearest one.
pub(crate) fn nanoseconds_of(text: &str) -> Option<i64> {
    parse_microseconds(text)
}

/// Does the same as [`parse_microseconds`] for the usual form: digits, with at most three decimals.
fn parse_plain(raw: &[u8]) -> Option<i64> {
    const MOST_DIGITS: usize = 15;
    let (whole, fraction, scale) = match raw {
        [whole @ .., b'.', _, _, _] => (whole, &raw[raw.len() - 3..], 1),
        [whole @ .., b'.', _, _] => (whole, &raw[raw.len() - 2..], 10),
        [whole @ .., b'.', _] => (whole, &raw[raw.len() - 1..], 100),
        _ => (raw, &raw[..0], 1000),
    };
    if !(1..=MOST_DIGITS).contains(&whole.len()) {
        return None;
    }
    let nanoseconds = decimal(whole)? * 1000 + decimal(fraction)? * scale;
    Some(nanoseconds as i64)
}

/// Parses decimal microseconds into nanoseconds, rounded to the nearest one.
///
/// Accepts every JSON number.
fn parse_microseconds(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let value = scale(whole, fraction, exponent.checked_add(3)?)?;
    let value = i64::try_from(value).ok()?;
    Some(if negative { -value } else { value })
}

/// Returns `whole.fraction * 10^exponent`, rounded half up.
fn scale(whole: &str, fraction: &str, exponent: i32) -> Option<u128> {
    const ENOUGH_DIGITS: usize = 36;
    let mut value: u128 = 0;
    let mut power = exponent;
    for byte in whole.bytes() {
        value = value.checked_mul(10)?.checked_add(digit(byte)?)?;
    }
    for (index, byte) in fraction.bytes().enumerate() {
        let digit = digit(byte)?;
        if index + whole.len() < ENOUGH_DIGITS {
            value = value.checked_mul(10)?.checked_add(digit)?;
            power -= 1;
        }
    }
    if value == 0 {
        return Some(0);
    }
    let factor = 10_u128.checked_pow(power.unsigned_abs());
    if power >= 0 {
        value.checked_mul(factor?)
    } else {
        Some(factor.map_or(0, |factor| (value + factor / 2) / factor))
    }
}

fn digit(byte: u8) -> Option<u128> {
    byte.is_ascii_digit().then(|| u128::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_base_is_the_start_of_its_three_months() {
        assert_eq!(
            base_ns(1_794_701_564_297_286_281),
            1_790_857_026_000_000_000
        );
        assert_eq!(base_ns(5), 0);
    }

    #[test]
    fn nanoseconds_of_a_date_are_exact() {
        for (text, nanoseconds) in [
            ("3844538297286.281", 3_844_538_297_286_281),
            ("1790857026000000.001", 1_790_857_026_000_000_001),
            ("5", 5_000),
            ("0.0004", 0),
            ("0.0005", 1),
            ("-1.5", -1_500),
            ("1.5e3", 1_500_000),
            ("15E-1", 1_500),
            ("0.1234999999999999999999999999999999999999999999", 123),
            ("0e999", 0),
            ("1e-999", 0),
        ] {
            let (plain, quoted) = (text.to_owned(), format!("\"{text}\""));
            assert_eq!(
                Stated::read(plain.as_bytes()),
                Stated::Nanos(nanoseconds),
                "{text}"
            );
            let quoted = Stated::read(quoted.as_bytes());
            assert_eq!(quoted, Stated::NanosInText(nanoseconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "x",
            "1e",
            "1.2.3",
            "null",
            "1e30",
            "99999999999999999999",
        ] {
            assert_eq!(Stated::read(text.as_bytes()), Stated::Nothing, "{text}");
        }
        for text in ["NaN", "-Infinity", "\"nan\"", "inf"] {
            assert_eq!(Stated::read(text.as_bytes()), Stated::NotANumber, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_short_way_and_the_long_way_agree(text in "[0-9]{0,16}(\\.[0-9]{0,4})?") {
            if let Some(nanoseconds) = parse_plain(text.as_bytes()) {
                prop_assert_eq!(parse_microseconds(&text), Some(nanoseconds));
            }
        }

        #[test]
        fn every_nanosecond_is_read_back(nanoseconds in 0..1_u64 << 62) {
            let text = format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
            prop_assert_eq!(Stated::read(text.as_bytes()), Stated::Nanos(nanoseconds as i64));
        }
    }
}
