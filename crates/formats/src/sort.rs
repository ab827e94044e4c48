//! What the rows of a table can be sorted by.

use std::cmp::Ordering;
use std::str::FromStr;

use mindprof_analyze::Average;

use crate::{Error, Result};

/// The value that rows are sorted by, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortBy {
    /// The key, last in the alphabet first.
    Key,
    /// The number of events.
    Count,
    /// The time on the host per event, children included.
    CpuTime,
    /// The time on the host, children included.
    CpuTimeTotal,
    /// The time on the host without the children.
    SelfCpuTimeTotal,
}

impl SortBy {
    /// Every sort key.
    pub const ALL: [Self; 5] = [
        Self::SelfCpuTimeTotal,
        Self::CpuTimeTotal,
        Self::CpuTime,
        Self::Count,
        Self::Key,
    ];

    /// Returns torch's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Count => "count",
            Self::CpuTime => "cpu_time",
            Self::CpuTimeTotal => "cpu_time_total",
            Self::SelfCpuTimeTotal => "self_cpu_time_total",
        }
    }

    /// Compares two rows so that the one to show first is the smaller one.
    pub(crate) fn compare(self, a: &Average, b: &Average) -> Ordering {
        match self {
            Self::Key => b.key.cmp(&a.key),
            Self::Count => b.count.cmp(&a.count),
            Self::CpuTime => mean(b).total_cmp(&mean(a)),
            Self::CpuTimeTotal => b.cpu_total.cmp(&a.cpu_total),
            Self::SelfCpuTimeTotal => b.self_cpu_total.cmp(&a.self_cpu_total),
        }
    }
}

fn mean(row: &Average) -> f64 {
    row.cpu_total.0 as f64 / row.count.max(1) as f64
}

impl FromStr for SortBy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|sort_by| sort_by.name() == text);
        found.ok_or_else(|| Error::UnknownSortKey {
            name: text.into(),
            expected: Self::ALL.map(Self::name).join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_parsed_and_an_unknown_one_is_named() {
        for sort_by in SortBy::ALL {
            assert_eq!(sort_by.name().parse::<SortBy>().unwrap(), sort_by);
        }
        assert_eq!(
            "foo".parse::<SortBy>().unwrap_err().to_string(),
            "unknown sort key `foo`, expected one of self_cpu_time_total, cpu_time_total, cpu_time, count, key"
        );
    }
}
