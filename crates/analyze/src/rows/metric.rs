//! The metrics of events and rows: torch's name of each, its unit, and where it is found among
//! sums.
//!
//! Tables, sort keys, JSON, columns and the Python rows all follow from this one table.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::ops::Index;

use crate::rows::micros::{microseconds, nanoseconds};
use crate::rows::sums::Sums;

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
            Number::Micros(get) => Amount::Float(get(sums)),
            Number::Whole(get) => Amount::Whole(get(sums)),
            Number::Mean(total) => mean(total.of(sums), sums.count as i64),
        }
    }

    const fn entry(self) -> Entry {
        use Number::{Mean, Micros, Whole};
        use Unit::{Bytes, Events, Operations};
        let (name, unit, number) = match self {
            Self::SelfCpuTimeTotal => (
                "self_cpu_time_total",
                Unit::Micros,
                Micros(|sums| microseconds(sums.self_cpu_total)),
            ),
            Self::CpuTimeTotal => (
                "cpu_time_total",
                Unit::Micros,
                Micros(|sums| sums.cpu_micros),
            ),
            Self::CpuTime => ("cpu_time", Unit::Micros, Mean(Self::CpuTimeTotal)),
            Self::SelfDeviceTimeTotal => (
                "self_device_time_total",
                Unit::Micros,
                Micros(|sums| microseconds(sums.self_device_total)),
            ),
            Self::DeviceTimeTotal => (
                "device_time_total",
                Unit::Micros,
                Micros(|sums| sums.device_micros),
            ),
            Self::DeviceTime => ("device_time", Unit::Micros, Mean(Self::DeviceTimeTotal)),
            Self::SelfCpuMemoryUsage => (
                "self_cpu_memory_usage",
                Bytes,
                Whole(|sums| sums.self_memory.host),
            ),
            Self::CpuMemoryUsage => ("cpu_memory_usage", Bytes, Whole(|sums| sums.memory.host)),
            Self::SelfDeviceMemoryUsage => (
                "self_device_memory_usage",
                Bytes,
                Whole(|sums| sums.self_memory.device),
            ),
            Self::DeviceMemoryUsage => (
                "device_memory_usage",
                Bytes,
                Whole(|sums| sums.memory.device),
            ),
            Self::Flops => ("flops", Operations, Whole(|sums| sums.flops as i64)),
            Self::Count => ("count", Events, Whole(|sums| sums.count as i64)),
        };
        Entry { name, unit, number }
    }
}

/// What is known of a metric.
struct Entry {
    name: &'static str,
    unit: Unit,
    number: Number,
}

/// Where the number of a metric is found.
enum Number {
    Micros(fn(&Sums) -> f64),
    Whole(fn(&Sums) -> i64),
    /// It is that of another, per event.
    Mean(Metric),
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
        Self::from(Sums::default())
    }
}

impl From<Sums> for Amounts {
    fn from(sums: Sums) -> Self {
        Self(Metric::ALL.map(|metric| metric.of(&sums)))
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

    /// Adds others to these.
    pub fn add(&mut self, other: &Self) {
        let sum = Self::read(|metric| {
            Ok::<_, Infallible>(match (self[metric], other[metric]) {
                (Amount::Whole(a), Amount::Whole(b)) => Amount::Whole(a + b),
                // Own times are sums of whole nanoseconds, however they are told: the total of rows
                // is the same before and after someone has looked at them.
                (a, b) if is_own_time(metric) => {
                    let [a, b] = [a, b].map(|time| nanoseconds(time.float()));
                    Amount::Float(microseconds(a + b))
                }
                (a, b) => Amount::Float(a.float() + b.float()),
            })
        });
        let Ok(sum) = sum;
        *self = sum;
    }
}

fn is_own_time(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::SelfCpuTimeTotal | Metric::SelfDeviceTimeTotal
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_times_are_summed_in_whole_nanoseconds() {
        let own = |micros: f64| {
            let read = |metric| {
                let is_own = metric == Metric::SelfCpuTimeTotal;
                Ok::<_, Infallible>(Amount::Float(if is_own { micros } else { 0.0 }))
            };
            Amounts::read(read).unwrap()
        };
        let mut sum = own(0.1);
        sum.add(&own(0.2));
        // As floats they would come to 0.30000000000000004.
        assert_eq!(sum[Metric::SelfCpuTimeTotal].float().to_string(), "0.3");
    }

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
    fn amounts_are_added_and_means_follow() {
        let numbers = |factor: i64| {
            Amounts::read(|metric| {
                let number = factor * (metric as i64 + 1);
                Ok::<_, ()>(match metric.unit() {
                    Unit::Micros => Amount::Float(number as f64),
                    Unit::Bytes | Unit::Operations | Unit::Events => Amount::Whole(number),
                })
            })
            .unwrap()
        };
        let mut sum = numbers(1);
        sum.add(&numbers(2));
        assert_eq!(sum, numbers(3));
        // Both of them grew alike.
        assert_eq!(sum[Metric::CpuTime], numbers(1)[Metric::CpuTime]);
    }

    #[test]
    fn the_mean_of_nothing_is_zero() {
        let amounts = Amounts::default();
        assert_eq!(amounts[Metric::DeviceTime], Amount::Float(0.0));
    }
}
