//! How long work waits between its launch and its start.

use mindprof_analyze::Percentiles;
use mindprof_model::Nanos;
use serde::Serialize;

use crate::questions::micros;

/// Delays beyond these count as long and as very long.
const LONG: Nanos = Nanos(50_000);
const VERY_LONG: Nanos = Nanos(100_000);

/// The delays between the end of a launching call and the start of its work. A delay is zero if the
/// work began before the call returned.
///
/// A long delay means that the queue of the device was full of work, which is good: the CPU runs
/// ahead. Delays of a few microseconds while the device idles mean that it waits for the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaunchDelays {
    /// The number of launches.
    pub launches: u64,
    /// The sum of all delays.
    #[serde(rename = "sum_us", serialize_with = "micros")]
    pub sum: Nanos,
    /// The median.
    #[serde(rename = "p50_us", serialize_with = "micros")]
    pub p50: Nanos,
    /// 90 % of the delays are at most this long.
    #[serde(rename = "p90_us", serialize_with = "micros")]
    pub p90: Nanos,
    /// 99 % of the delays are at most this long.
    #[serde(rename = "p99_us", serialize_with = "micros")]
    pub p99: Nanos,
    /// The longest delay.
    #[serde(rename = "max_us", serialize_with = "micros")]
    pub max: Nanos,
    /// The number of delays beyond 50 microseconds.
    pub over_50_us: u64,
    /// The number of delays beyond 100 microseconds.
    pub over_100_us: u64,
    /// The number of works whose launch was not recorded.
    pub unknown: u64,
}

impl LaunchDelays {
    /// Sums up delays, which it sorts.
    pub(crate) fn of(delays: &mut [Nanos], unknown: u64) -> Self {
        let percentiles = Percentiles::of(delays);
        let beyond =
            |limit| (delays.len() - delays.partition_point(|&delay| delay <= limit)) as u64;
        Self {
            launches: delays.len() as u64,
            sum: Nanos(delays.iter().map(|delay| delay.0).sum()),
            p50: percentiles.p50,
            p90: percentiles.p90,
            p99: percentiles.p99,
            max: percentiles.max,
            over_50_us: beyond(LONG),
            over_100_us: beyond(VERY_LONG),
            unknown,
        }
    }

    /// Returns the percentiles beyond the median that people are told, and the longest delay.
    pub fn tail(&self) -> Vec<(&'static str, Nanos)> {
        let percentiles = Percentiles {
            p50: self.p50,
            p90: self.p90,
            p99: self.p99,
            max: self.max,
        };
        let told = percentiles.told(self.launches as usize);
        told.chain([("longest", self.max)]).collect()
    }
}
