//! Times, percentages and amounts of memory as text, formatted as in torch's tables.

use std::str::FromStr;

use crate::error::{Error, Result};

/// The unit of all times of a table.
///
/// It is parsed from `s`, `ms` or `us`. Without one, each time has the unit that fits its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
}

impl TimeUnit {
    /// Returns the unit that fits a time. Negative times stay in microseconds, as in torch.
    fn fitting(microseconds: f64) -> Self {
        if microseconds >= 1e6 {
            Self::Seconds
        } else if microseconds >= 1e3 {
            Self::Milliseconds
        } else {
            Self::Microseconds
        }
    }

    const fn microseconds(self) -> f64 {
        match self {
            Self::Seconds => 1e6,
            Self::Milliseconds => 1e3,
            Self::Microseconds => 1.0,
        }
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
        }
    }
}

impl FromStr for TimeUnit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "s" => Ok(Self::Seconds),
            "ms" => Ok(Self::Milliseconds),
            "us" => Ok(Self::Microseconds),
            _ => Err(Error::UnknownTimeUnit { name: text.into() }),
        }
    }
}

/// Returns a time as text, in the given unit or in the one that fits its size.
///
/// The unit is chosen before rounding, so a time just below a millisecond is `1000.000us`.
pub fn time_text(microseconds: f64, unit: Option<TimeUnit>) -> String {
    let unit = unit.unwrap_or_else(|| TimeUnit::fitting(microseconds));
    let value = microseconds / unit.microseconds();
    if value.is_nan() {
        return format!("nan{}", unit.suffix());
    }
    format!("{value:.3}{}", unit.suffix())
}

/// Returns a part of a whole as a percentage, or `NaN` if the whole is zero.
pub fn share_text(part: f64, whole: f64) -> String {
    if whole == 0.0 {
        return "NaN".into();
    }
    format!("{:.2}%", part * 100.0 / whole)
}

/// Returns a number of bytes as text, in the unit that fits its size.
pub fn memory_text(bytes: i64) -> String {
    const KB: f64 = 1024.0;
    const MB: f64 = 1024.0 * KB;
    const GB: f64 = 1024.0 * MB;
    let value = bytes as f64;
    if value.abs() >= GB {
        format!("{:.2} GB", value / GB)
    } else if value.abs() >= MB {
        format!("{:.2} MB", value / MB)
    } else if value.abs() >= KB {
        format!("{:.2} KB", value / KB)
    } else {
        format!("{bytes} B")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_choose_their_unit_before_rounding() {
        for (microseconds, text) in [
            (0.0, "0.000us"),
            (0.0004, "0.000us"),
            (0.5, "0.500us"),
            (-1.0, "-1.000us"),
            (-5e6, "-5000000.000us"),
            (999.9994, "999.999us"),
            (999.9996, "1000.000us"),
            (1000.0, "1.000ms"),
            (1234.5678, "1.235ms"),
            (-5000.0, "-5000.000us"),
            (999_999.9, "1000.000ms"),
            (1e6, "1.000s"),
            (1e12, "1000000.000s"),
            (f64::NAN, "nanus"),
            (f64::INFINITY, "infs"),
        ] {
            assert_eq!(time_text(microseconds, None), text);
        }
    }

    #[test]
    fn a_given_unit_is_kept() {
        assert_eq!(time_text(1500.0, Some(TimeUnit::Seconds)), "0.002s");
        assert_eq!(
            time_text(1500.0, Some(TimeUnit::Microseconds)),
            "1500.000us"
        );
        let unit: TimeUnit = "ms".parse().unwrap();
        assert_eq!(time_text(1.0, Some(unit)), "0.001ms");
        assert_eq!(
            "h".parse::<TimeUnit>().unwrap_err().to_string(),
            "unknown time unit `h`, expected one of s, ms, us"
        );
    }

    #[test]
    fn shares_have_two_digits() {
        assert_eq!(share_text(1.0, 3.0), "33.33%");
        assert_eq!(share_text(200.0, 100.0), "200.00%");
        assert_eq!(share_text(-1.0, 100.0), "-1.00%");
        assert_eq!(share_text(0.0, 0.0), "NaN");
    }

    #[test]
    fn memory_goes_up_to_gigabytes() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KB"),
            (-1024, "-1.00 KB"),
            (1_048_575, "1024.00 KB"),
            ((1 << 30) - 1, "1024.00 MB"),
            (5 << 40, "5120.00 GB"),
        ] {
            assert_eq!(memory_text(bytes), text);
        }
    }
}
