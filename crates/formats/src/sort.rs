//! What the rows of a table can be sorted by.

use std::cmp::Ordering;
use std::str::FromStr;

use crate::{Error, Result, Row};

/// The value that rows are sorted by, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortBy {
    /// The time on the host without the children.
    SelfCpuTimeTotal,
    /// The time on the host, children included.
    CpuTimeTotal,
    /// The time on the host per event, children included.
    CpuTime,
    /// The time on devices without the children's.
    SelfDeviceTimeTotal,
    /// The time on devices, children's included.
    DeviceTimeTotal,
    /// The time on devices per event, children's included.
    DeviceTime,
    /// The memory on the host without the children's.
    SelfCpuMemoryUsage,
    /// The memory on the host, children's included.
    CpuMemoryUsage,
    /// The memory on devices without the children's.
    SelfDeviceMemoryUsage,
    /// The memory on devices, children's included.
    DeviceMemoryUsage,
    /// The floating-point operations.
    Flops,
    /// The number of events.
    Count,
    /// The key, last in the alphabet first.
    Key,
}

impl SortBy {
    /// Every sort key.
    pub const ALL: [Self; 13] = [
        Self::SelfCpuTimeTotal,
        Self::CpuTimeTotal,
        Self::CpuTime,
        Self::SelfDeviceTimeTotal,
        Self::DeviceTimeTotal,
        Self::DeviceTime,
        Self::SelfCpuMemoryUsage,
        Self::CpuMemoryUsage,
        Self::SelfDeviceMemoryUsage,
        Self::DeviceMemoryUsage,
        Self::Flops,
        Self::Count,
        Self::Key,
    ];

    /// Returns torch's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SelfCpuTimeTotal => "self_cpu_time_total",
            Self::CpuTimeTotal => "cpu_time_total",
            Self::CpuTime => "cpu_time",
            Self::SelfDeviceTimeTotal => "self_device_time_total",
            Self::DeviceTimeTotal => "device_time_total",
            Self::DeviceTime => "device_time",
            Self::SelfCpuMemoryUsage => "self_cpu_memory_usage",
            Self::CpuMemoryUsage => "cpu_memory_usage",
            Self::SelfDeviceMemoryUsage => "self_device_memory_usage",
            Self::DeviceMemoryUsage => "device_memory_usage",
            Self::Flops => "flops",
            Self::Count => "count",
            Self::Key => "key",
        }
    }

    /// Compares two rows so that the one to show first is the smaller one.
    pub(crate) fn compare(self, a: &Row<'_>, b: &Row<'_>) -> Ordering {
        match self {
            Self::SelfCpuTimeTotal => b.self_cpu.total_cmp(&a.self_cpu),
            Self::CpuTimeTotal => b.cpu_total.total_cmp(&a.cpu_total),
            Self::CpuTime => b.mean(b.cpu_total).total_cmp(&a.mean(a.cpu_total)),
            Self::SelfDeviceTimeTotal => b.self_device.total_cmp(&a.self_device),
            Self::DeviceTimeTotal => b.device_total.total_cmp(&a.device_total),
            Self::DeviceTime => b.mean(b.device_total).total_cmp(&a.mean(a.device_total)),
            Self::SelfCpuMemoryUsage => b.self_cpu_memory.cmp(&a.self_cpu_memory),
            Self::CpuMemoryUsage => b.cpu_memory.cmp(&a.cpu_memory),
            Self::SelfDeviceMemoryUsage => b.self_device_memory.cmp(&a.self_device_memory),
            Self::DeviceMemoryUsage => b.device_memory.cmp(&a.device_memory),
            Self::Flops => flops(b).total_cmp(&flops(a)),
            Self::Count => b.count.cmp(&a.count),
            Self::Key => b.name.cmp(&a.name),
        }
    }
}

fn flops(row: &Row<'_>) -> f64 {
    row.flops.unwrap_or(0.0)
}

impl FromStr for SortBy {
    type Err = Error;

    /// Takes torch's names; those of one kind of device stand for devices of any kind.
    fn from_str(text: &str) -> Result<Self> {
        let name = ["cuda", "xpu", "privateuse1"]
            .iter()
            .fold(text.to_owned(), |name, device| {
                name.replace(device, "device")
            });
        let found = Self::ALL.into_iter().find(|sort_by| sort_by.name() == name);
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
        let cuda: SortBy = "self_cuda_time_total".parse().unwrap();
        assert_eq!(cuda, SortBy::SelfDeviceTimeTotal);
        let error = "foo".parse::<SortBy>().unwrap_err().to_string();
        assert!(
            error.starts_with("unknown sort key `foo`, expected one of self_cpu_time_total, "),
            "{error}"
        );
    }
}
