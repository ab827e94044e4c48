//! The metrics of events and rows: torch's name for each, its unit, and how it is read from sums.
//!
//! Tables, sort keys, JSON, data frames and the Python rows are all derived from this one table.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::ops::Index;

use crate::rows::micros::{microseconds, nanoseconds};
use crate::rows::sums::Sums;

/// A number that every row and every event has.
///
/// Sort keys, columns, JSON fields and the attributes of the Python rows are derived from
/// [`Self::ALL`], so that each name and unit is defined once. The names are those of torch's
/// `FunctionEventAvg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The CPU time without that of the children.
    SelfCpuTimeTotal,
    /// The CPU time, including that of the children.
    CpuTimeTotal,
    /// The mean CPU time per event, including that of the children.
    CpuTime,
    /// The device time without that of the children.
    SelfDeviceTimeTotal,
    /// The device time, including that of the children.
    DeviceTimeTotal,
    /// The mean device time per event, including that of the children.
    DeviceTime,
    /// The CPU memory without that of the children.
    SelfCpuMemoryUsage,
    /// The CPU memory, including that of the children.
    CpuMemoryUsage,
    /// The device memory without that of the children.
    SelfDeviceMemoryUsage,
    /// The device memory, including that of the children.
    DeviceMemoryUsage,
    /// The number of floating-point operations.
    Flops,
    /// The number of events.
    Count,
}

/// The unit of a metric's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Microseconds, as floating-point numbers.
    Micros,
    /// Bytes, negative if more was freed than allocated.
    Bytes,
    /// Floating-point operations.
    Operations,
    /// Events.
    Events,
}

impl Metric {
    /// Every metric, in the order of sort keys and JSON fields.
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

    /// The metrics that are sums rather than means, in the order of columns.
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

    /// Returns torch's name for the metric.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the unit of the metric.
    pub const fn unit(self) -> Unit {
        self.entry().unit
    }

    /// Reads the metric from sums.
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

/// The definition of a metric.
struct Entry {
    name: &'static str,
    unit: Unit,
    number: Number,
}

/// The way in which a metric is read from sums.
enum Number {
    Micros(fn(&Sums) -> f64),
    Whole(fn(&Sums) -> i64),
    /// The mean per event of another metric.
    Mean(Metric),
}

/// The value of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A whole number of bytes, operations or events.
    Whole(i64),
    /// A floating-point number; times are in microseconds.
    Float(f64),
}

impl Amount {
    /// Returns the value as a floating-point number.
    pub const fn float(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// Returns the value as a whole number, cutting off any fraction.
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

/// The values of all metrics.
///
/// Python code may create rows from arbitrary numbers, which need not agree with any recording.
/// This type holds such rows; rows of a profile are [`Sums`], which convert into it.
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
    /// Reads the metrics that are sums one by one, and computes the means from them.
    ///
    /// # Errors
    /// If `read` fails.
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

    /// Adds other amounts to these, and computes the means anew.
    pub fn add(&mut self, other: &Self) {
        let sum = Self::read(|metric| {
            Ok::<_, Infallible>(match (self[metric], other[metric]) {
                (Amount::Whole(a), Amount::Whole(b)) => Amount::Whole(a + b),
                // Self times are sums of whole nanoseconds. Adding them as such keeps the total of
                // rows the same whether or not they went through floating-point microseconds.
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

/// Returns the mean of a total, which is zero if there are no events.
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
    fn self_times_are_summed_in_whole_nanoseconds() {
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
