//! The sort keys of tables, which have torch's names.

use std::cmp::Ordering;
use std::str::FromStr;

use mindprof_analyze::Metric;

use crate::error::{Error, Result};
use crate::row::Row;

/// The value that rows are sorted by, in descending order.
///
/// A sort key is parsed from the name that torch's `sort_by` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortBy {
    /// The amount of a metric.
    Metric(Metric),
    /// The name of the row.
    Key,
}

impl SortBy {
    /// Returns an iterator over every sort key.
    pub fn all() -> impl Iterator<Item = Self> {
        Metric::ALL.into_iter().map(Self::Metric).chain([Self::Key])
    }

    /// Returns torch's name for this key.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metric(metric) => metric.name(),
            Self::Key => "key",
        }
    }

    /// Compares two rows. The row to show first is the smaller one.
    pub(crate) fn compare(self, a: &Row<'_>, b: &Row<'_>) -> Ordering {
        match self {
            Self::Metric(metric) => b.amounts[metric].compare(a.amounts[metric]),
            Self::Key => b.name.cmp(&a.name),
        }
    }
}

impl FromStr for SortBy {
    type Err = Error;

    /// Parses one of torch's names. `cuda`, `xpu` and `privateuse1` in a name mean any device.
    fn from_str(text: &str) -> Result<Self> {
        let name = ["cuda", "xpu", "privateuse1"]
            .iter()
            .fold(text.to_owned(), |name, device| {
                name.replace(device, "device")
            });
        let found = Self::all().find(|sort_by| sort_by.name() == name);
        found.ok_or_else(|| Error::UnknownSortKey {
            name: text.into(),
            expected: Self::all().map(Self::name).collect::<Vec<_>>().join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_parsed_and_an_unknown_one_is_named() {
        for sort_by in SortBy::all() {
            assert_eq!(sort_by.name().parse::<SortBy>().unwrap(), sort_by);
        }
        let cuda: SortBy = "self_cuda_time_total".parse().unwrap();
        assert_eq!(cuda, SortBy::Metric(Metric::SelfDeviceTimeTotal));
        let error = "foo".parse::<SortBy>().unwrap_err().to_string();
        assert!(
            error.starts_with("unknown sort key `foo`, expected one of self_cpu_time_total, "),
            "{error}"
        );
    }
}
