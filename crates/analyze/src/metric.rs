//! The metrics of events and rows: torch's name of each, its unit, and where it is found among
//! sums.
//!
//! Tables, sort keys, JSON, columns and the Python rows all follow from this one table.

use std::cmp::Ordering;
use std::ops::Index;

use mindprof_model::Nanos;

use crate::averages::Sums;

/// One number that rows and events have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
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
}

/// What the numbers of a metric count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Microseconds, as floating-point numbers.
    Micros,
    /// Bytes, of which there can be less than none.
    Bytes,
    /// Floating-point operations.
    Operations,
    /// Events.
    Events,
}

impl Metric {
    /// Every metric, in the order in which sort keys are listed and JSON has them.
    pub const ALL: [Self; 12] = [
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
    ];

    /// Those that are sums, and no means that follow from them, in the order of columns.
    pub const SUMS: [Self; 10] = [
        Self::Count,
        Self::CpuTimeTotal,
        Self::SelfCpuTimeTotal,
        Self::DeviceTimeTotal,
        Self::SelfDeviceTimeTotal,
        Self::CpuMemoryUsage,
        Self::SelfCpuMemoryUsage,
        Self::DeviceMemoryUsage,
        Self::SelfDeviceMemoryUsage,
        Self::Flops,
    ];

    /// Returns torch's name for it.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns what its numbers count.
    pub const fn unit(self) -> Unit {
        self.entry().unit
    }

    /// Returns how much of it there is in sums.
    #[inline]
    pub fn of(self, sums: &Sums) -> Amount {
        match self.entry().number {
            Number::Micros { get, .. } => Amount::Float(get(sums)),
            Number::Whole { get, .. } => Amount::Whole(get(sums)),
            Number::Mean(total) => mean(total.of(sums), sums.count as i64),
        }
    }

    const fn entry(self) -> Entry {
        match self {
            Self::SelfCpuTimeTotal => Entry::micros(
                "self_cpu_time_total",
                |sums| microseconds(sums.self_cpu_total),
                |sums, micros| sums.self_cpu_total = nanoseconds(micros),
            ),
            Self::CpuTimeTotal => Entry::micros(
                "cpu_time_total",
                |sums| sums.cpu_micros,
                |sums, micros| (sums.cpu_total, sums.cpu_micros) = (nanoseconds(micros), micros),
            ),
            Self::CpuTime => Entry::mean("cpu_time", Self::CpuTimeTotal),
            Self::SelfDeviceTimeTotal => Entry::micros(
                "self_device_time_total",
                |sums| microseconds(sums.self_device_total),
                |sums, micros| sums.self_device_total = nanoseconds(micros),
            ),
            Self::DeviceTimeTotal => Entry::micros(
                "device_time_total",
                |sums| sums.device_micros,
                |sums, micros| {
                    (sums.device_total, sums.device_micros) = (nanoseconds(micros), micros);
                },
            ),
            Self::DeviceTime => Entry::mean("device_time", Self::DeviceTimeTotal),
            Self::SelfCpuMemoryUsage => Entry::bytes(
                "self_cpu_memory_usage",
                |sums| sums.self_memory.host,
                |sums, bytes| sums.self_memory.host = bytes,
            ),
            Self::CpuMemoryUsage => Entry::bytes(
                "cpu_memory_usage",
                |sums| sums.memory.host,
                |sums, bytes| sums.memory.host = bytes,
            ),
            Self::SelfDeviceMemoryUsage => Entry::bytes(
                "self_device_memory_usage",
                |sums| sums.self_memory.device,
                |sums, bytes| sums.self_memory.device = bytes,
            ),
            Self::DeviceMemoryUsage => Entry::bytes(
                "device_memory_usage",
                |sums| sums.memory.device,
                |sums, bytes| sums.memory.device = bytes,
            ),
            Self::Flops => Entry {
                name: "flops",
                unit: Unit::Operations,
                number: Number::Whole {
                    get: |sums| sums.flops as i64,
                    set: |sums, count| sums.flops = count as u64,
                },
            },
            Self::Count => Entry {
                name: "count",
                unit: Unit::Events,
                number: Number::Whole {
                    get: |sums| sums.count as i64,
                    set: |sums, count| sums.count = count as u64,
                },
            },
        }
    }
}

/// What is known of a metric.
struct Entry {
    name: &'static str,
    unit: Unit,
    number: Number,
}

/// Where the number of a metric is found and put.
enum Number {
    Micros {
        get: fn(&Sums) -> f64,
        set: fn(&mut Sums, f64),
    },
    Whole {
        get: fn(&Sums) -> i64,
        set: fn(&mut Sums, i64),
    },
    /// It is that of another, per event.
    Mean(Metric),
}

impl Entry {
    const fn micros(name: &'static str, get: fn(&Sums) -> f64, set: fn(&mut Sums, f64)) -> Self {
        Self {
            name,
            unit: Unit::Micros,
            number: Number::Micros { get, set },
        }
    }

    const fn bytes(name: &'static str, get: fn(&Sums) -> i64, set: fn(&mut Sums, i64)) -> Self {
        Self {
            name,
            unit: Unit::Bytes,
            number: Number::Whole { get, set },
        }
    }

    const fn mean(name: &'static str, total: Metric) -> Self {
        Self {
            name,
            unit: Unit::Micros,
            number: Number::Mean(total),
        }
    }
}

/// How much there is of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A whole number: of bytes, operations or events.
    Whole(i64),
    /// Any number. Times are microseconds.
    Float(f64),
}

impl Amount {
    /// Returns it as a floating-point number.
    pub const fn float(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// Returns it as a whole number.
    pub const fn whole(self) -> i64 {
        match self {
            Self::Whole(number) => number,
            Self::Float(number) => number as i64,
        }
    }

    /// Compares two amounts of one metric.
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(&b),
            (a, b) => a.float().total_cmp(&b.float()),
        }
    }
}

/// How much there is of every metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amounts([Amount; Metric::ALL.len()]);

impl Default for Amounts {
    fn default() -> Self {
        Self::from(&Sums::default())
    }
}

impl From<&Sums> for Amounts {
    fn from(sums: &Sums) -> Self {
        Self(Metric::ALL.map(|metric| metric.of(sums)))
    }
}

impl From<&Amounts> for Sums {
    fn from(amounts: &Amounts) -> Self {
        let mut sums = Self::default();
        for metric in Metric::SUMS {
            match metric.entry().number {
                Number::Micros { set, .. } => set(&mut sums, amounts[metric].float()),
                Number::Whole { set, .. } => set(&mut sums, amounts[metric].whole()),
                Number::Mean(_) => {}
            }
        }
        sums
    }
}

impl Amounts {
    /// Takes the amounts that are sums one by one; means follow from them.
    ///
    /// # Errors
    /// When `read` fails.
    pub fn read<E>(mut read: impl FnMut(Metric) -> Result<Amount, E>) -> Result<Self, E> {
        let mut amounts = Self::default();
        for metric in Metric::SUMS {
            amounts.0[metric as usize] = read(metric)?;
        }
        for metric in Metric::ALL {
            if let Number::Mean(total) = metric.entry().number {
                let count = amounts[Metric::Count].whole();
                amounts.0[metric as usize] = mean(amounts[total], count);
            }
        }
        Ok(amounts)
    }
}

impl Index<Metric> for Amounts {
    type Output = Amount;

    fn index(&self, metric: Metric) -> &Amount {
        &self.0[metric as usize]
    }
}

/// Returns a total per event; of none, zero.
fn mean(total: Amount, count: i64) -> Amount {
    let per_event = |total: f64| total / count as f64;
    Amount::Float(if count == 0 {
        0.0
    } else {
        per_event(total.float())
    })
}

/// Returns a time in microseconds.
#[inline]
pub fn microseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

/// Returns microseconds as whole nanoseconds. What is negative counts as nothing.
pub fn nanoseconds(microseconds: f64) -> Nanos {
    Nanos((microseconds * 1e3).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_metric_is_its_number() {
        for (index, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!(metric as usize, index, "{}", metric.name());
        }
    }

    #[test]
    fn every_metric_is_a_sum_or_a_mean_of_one() {
        let is_mean = |metric: &Metric| matches!(metric.entry().number, Number::Mean(_));
        for metric in Metric::ALL {
            let is_sum = Metric::SUMS.contains(&metric);
            assert_ne!(is_sum, is_mean(&metric), "{}", metric.name());
        }
    }

    #[test]
    fn amounts_become_the_sums_that_they_are_of() {
        let numbers = Metric::SUMS.iter().zip(1_i64..);
        let number = |metric| numbers.clone().find(|(one, _)| **one == metric);
        let amounts = Amounts::read(|metric| {
            let (_, number) = number(metric).ok_or(())?;
            Ok::<_, ()>(match metric.unit() {
                Unit::Micros => Amount::Float(number as f64),
                Unit::Bytes | Unit::Operations | Unit::Events => Amount::Whole(number),
            })
        })
        .unwrap();
        let sums = Sums::from(&amounts);
        assert_eq!(Amounts::from(&sums), amounts);
        assert_eq!(sums.cpu_total, Nanos(2000));
        assert_eq!(amounts[Metric::CpuTime], Amount::Float(2.0));
    }

    #[test]
    fn the_mean_of_nothing_is_zero() {
        let amounts = Amounts::default();
        assert_eq!(amounts[Metric::DeviceTime], Amount::Float(0.0));
    }
}
