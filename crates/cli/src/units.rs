//! Values of options with units: times, sizes, percentages and ranges.
//!
//! The functions are clap value parsers. Their errors name the expected form.

use std::fmt;

use mindprof_model::Nanos;

/// Parses a time with its unit: `250ns`, `10us`, `1.5ms`, `2s`.
pub(crate) fn time(text: &str) -> Result<Nanos, String> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let nanoseconds = with_unit(text, &units);
    let found = nanoseconds.map(|value| Nanos(value.round() as u64));
    found.ok_or_else(|| "expected a time with a unit, such as 10us, 1.5ms or 2s".into())
}

/// Parses a size: `500KB`, `10MB`, `1GiB`, or a plain number of bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let units = [
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("B", 1.0),
        ("", 1.0),
    ];
    let bytes = with_unit(text, &units).filter(|&bytes| bytes >= 1.0);
    let found = bytes.map(|bytes| bytes as u64);
    found.ok_or_else(|| "expected a size, such as 500KB, 10MB or 1GiB".into())
}

/// A percentage, such as the limit of `diff --fail-over`.
///
/// It remembers whether the percent sign was written, to warn about numbers such as `0.05`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percent {
    /// The percentage as a fraction: 0.05 for `5%`.
    pub(crate) part: f64,
    has_sign: bool,
}

impl Percent {
    /// Returns a warning if the number looks like a fraction instead of a percentage.
    pub(crate) fn doubt(self) -> Option<String> {
        let is_doubtful = !self.has_sign && self.part > 0.0 && self.part < 0.01;
        is_doubtful.then(|| {
            let (number, part) = (self.part * 100.0, self.part * 10_000.0);
            let (number, part) = (plain(number), plain(part));
            format!(
                "warning: the limit is {number}%; write {part}% if you meant the fraction {number}"
            )
        })
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}%", plain(self.part * 100.0))
    }
}

/// Rounds away the floating-point error in the last digits.
fn plain(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

/// Parses a percentage: `5%` or `5`.
pub(crate) fn percent(text: &str) -> Result<Percent, String> {
    let units = [("%", 0.01), ("", 0.01)];
    let part = with_unit(text, &units);
    let part = part.ok_or_else(|| match text.trim().strip_prefix('-') {
        Some(rest) if with_unit(rest, &units).is_some() => {
            "a limit cannot be negative: use 0% or more".to_owned()
        }
        Some(_) | None => "expected a percentage, such as 5%".to_owned(),
    })?;
    let has_sign = text.trim().ends_with('%');
    Ok(Percent { part, has_sign })
}

/// Parses a number or an inclusive range: `3`, `3..5`, `3..`, `..5`.
pub(crate) fn range(text: &str) -> Result<(u64, u64), String> {
    let wrong = || "expected a number or a range, such as 3, 3..5 or 3..".to_owned();
    let end = |text: &str, open: u64| match text {
        "" => Ok(open),
        number => number.parse().map_err(|_| wrong()),
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (end(first, 0)?, end(last, u64::MAX)?),
        None => text.parse().map(|one| (one, one)).map_err(|_| wrong())?,
    };
    if first > last || text == ".." {
        return Err(wrong());
    }
    Ok((first, last))
}

/// Parses a number with one of the units, and returns it multiplied by the factor of the unit.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    units.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim_end();
        // Rust also parses `inf`, `nan` and exponents, which are not accepted here.
        let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let value: f64 = number.parse().ok().filter(|_| is_plain)?;
        Some(value * factor)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, nanoseconds) in [("7ns", 7), ("10us", 10_000), ("1.5 ms", 1_500_000)] {
            assert_eq!(time(text), Ok(Nanos(nanoseconds)));
        }
        assert_eq!(time("2s"), Ok(Nanos(2_000_000_000)));
        for text in ["", "5", "-1s", "infs", "1 h", "s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_may_have_a_unit() {
        for (text, bytes) in [("12", 12), ("12B", 12), ("1.5KB", 1500), ("2MiB", 2 << 20)] {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "0", "MB", "1TBB", "-5"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_percent() {
        assert!((percent("5%").unwrap().part - 0.05).abs() < 1e-12);
        assert!((percent("12.5").unwrap().part - 0.125).abs() < 1e-12);
        assert_eq!(percent("4.9%").unwrap().to_string(), "4.9%");
        assert_eq!(
            percent("0.05").unwrap().doubt().unwrap(),
            "warning: the limit is 0.05%; write 5% if you meant the fraction 0.05"
        );
        assert!(
            ["0.05%", "1", "0", "5"].map(|text| percent(text).unwrap().doubt())
                == [const { None }; 4]
        );
        for (text, problem) in [
            ("five", "expected a percentage, such as 5%"),
            ("--json", "expected a percentage, such as 5%"),
            ("-5", "a limit cannot be negative: use 0% or more"),
            ("-5%", "a limit cannot be negative: use 0% or more"),
        ] {
            assert_eq!(percent(text).unwrap_err(), problem, "{text}");
        }
    }

    #[test]
    fn ranges_include_their_ends() {
        assert_eq!(range("3"), Ok((3, 3)));
        assert_eq!(range("3..5"), Ok((3, 5)));
        assert_eq!(range("3.."), Ok((3, u64::MAX)));
        assert_eq!(range("..5"), Ok((0, 5)));
        for text in ["", "..", "5..3", "a", "1..b", "-1"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
