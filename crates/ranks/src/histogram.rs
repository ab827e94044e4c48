//! Distributions that merge exactly: counts of times by buckets whose widths grow with the times.
//!
//! Percentiles of parts cannot be merged, counts can. All arithmetic is on integers, so that the
//! order of merging does not matter.

use mindprof_model::Nanos;

use crate::codec::{Encode, Reader, Writer};
use crate::error::{Error, Result};

/// The bits of a time that tell its bucket, after the highest one. A bucket is at most a 64th of its
/// times wide, so its middle is at most 0.8 % away from each of them.
const BITS: u32 = 6;

/// A distribution of times: its count, sum, least and largest time, and a histogram.
///
/// A summary of a rank has one for each row. Those of several ranks merge into the distribution of
/// all of their times, whose percentiles are within 1 % of the exact ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Histogram {
    count: u64,
    sum: Nanos,
    least: Nanos,
    largest: Nanos,
    /// The numbers of times by bucket, sorted by bucket. Only buckets with times are kept.
    buckets: Vec<(u16, u64)>,
}

impl Encode for Histogram {
    fn write(&self, writer: &mut Writer) {
        (self.count, self.sum).write(writer);
        (self.least, self.largest).write(writer);
        self.buckets.write(writer);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (count, sum) = Encode::read(reader)?;
        let (least, largest) = Encode::read(reader)?;
        let histogram = Self {
            count,
            sum,
            least,
            largest,
            buckets: Vec::read(reader)?,
        };
        let is_sound = histogram.is_sound();
        is_sound
            .then_some(histogram)
            .ok_or(Error::Damaged("a distribution contradicts itself"))
    }
}

impl Histogram {
    /// Counts times.
    pub fn of(mut times: Vec<Nanos>) -> Self {
        times.sort_unstable();
        let mut histogram = Self {
            count: times.len() as u64,
            sum: times
                .iter()
                .fold(Nanos::ZERO, |sum, &time| sum.saturating_add(time)),
            least: times.first().copied().unwrap_or_default(),
            largest: times.last().copied().unwrap_or_default(),
            buckets: Vec::new(),
        };
        for time in times {
            let bucket = bucket_of(time.0);
            match histogram.buckets.last_mut() {
                Some((last, count)) if *last == bucket => *count += 1,
                Some(_) | None => histogram.buckets.push((bucket, 1)),
            }
        }
        histogram
    }

    /// Adds the times of another histogram.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.least = self.least.min(other.least);
        self.largest = self.largest.max(other.largest);
        let mut both = std::mem::take(&mut self.buckets);
        both.extend_from_slice(&other.buckets);
        // Two sorted runs: a stable sort merges them in linear time.
        both.sort_by_key(|&(bucket, _)| bucket);
        for (bucket, count) in both {
            match self.buckets.last_mut() {
                Some((last, sum)) if *last == bucket => *sum = sum.saturating_add(count),
                Some(_) | None => self.buckets.push((bucket, count)),
            }
        }
    }

    /// Returns whether the parts can be those of one distribution, as far as answers rely on it.
    fn is_sound(&self) -> bool {
        let is_sorted = self.buckets.is_sorted_by(|one, other| one.0 < other.0);
        let last = self.buckets.last().map_or(0, |&(bucket, _)| bucket);
        is_sorted && last <= bucket_of(u64::MAX) && self.least <= self.largest
    }

    /// Returns the number of times.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of all times.
    pub const fn sum(&self) -> Nanos {
        self.sum
    }

    /// Returns the least time, or zero if there is none.
    pub const fn least(&self) -> Nanos {
        self.least
    }

    /// Returns the largest time, or zero if there is none.
    pub const fn largest(&self) -> Nanos {
        self.largest
    }

    /// Returns the mean, or zero if there are no times.
    pub fn mean(&self) -> Nanos {
        Nanos(self.sum.0 / self.count.max(1))
    }

    /// Returns the time that so many percent of the times do not exceed, within 1 %: the nearest
    /// rank, or zero if there are no times.
    pub fn percentile(&self, percent: u64) -> Nanos {
        let rank = (u128::from(self.count) * u128::from(percent))
            .div_ceil(100)
            .max(1);
        let mut seen = 0_u128;
        for &(bucket, count) in &self.buckets {
            seen += u128::from(count);
            if seen >= rank {
                return Nanos(middle_of(bucket)).clamp(self.least, self.largest);
            }
        }
        self.largest
    }
}

/// Returns the bucket of a time. Times below 128 have a bucket of their own.
///
/// ```text
/// time      0 1 2 … 127 | 128 129 | 130 131 | … 255 | 256 … 259 | …
/// bucket    0 1 2 … 127 |   128   |   129   | … 191 |    192    | …
/// ```
fn bucket_of(time: u64) -> u16 {
    let shift = (time | 1).ilog2().saturating_sub(BITS);
    (u64::from(shift << BITS) + (time >> shift)) as u16
}

/// Returns the time in the middle of a bucket.
fn middle_of(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket >> BITS).saturating_sub(1);
    let low = (bucket - (shift << BITS)) << shift;
    low + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::{from_bytes, to_bytes};

    #[test]
    fn buckets_are_in_the_order_of_their_times_and_narrow() {
        let mut times: Vec<u64> = (0..2_000).collect();
        times.extend((0..64).flat_map(|bit| [(u64::MAX >> bit), (u64::MAX >> bit) / 3 * 2]));
        times.sort_unstable();
        for pair in times.windows(2) {
            assert!(bucket_of(pair[0]) <= bucket_of(pair[1]), "{pair:?}");
        }
        for time in times {
            let middle = middle_of(bucket_of(time));
            assert!(
                middle.abs_diff(time) <= time / 100,
                "{time} is in the bucket of {middle}"
            );
        }
    }

    #[test]
    fn a_distribution_that_contradicts_itself_is_damaged() {
        let sound = histogram(&[3, 900]);
        assert_eq!(
            from_bytes::<Histogram>(&to_bytes(&sound)).as_ref(),
            Ok(&sound)
        );
        let swapped = Histogram {
            least: sound.largest,
            largest: sound.least,
            ..sound.clone()
        };
        let unknown = Histogram {
            buckets: vec![(u16::MAX, 1)],
            ..sound
        };
        for damaged in [swapped, unknown] {
            assert!(from_bytes::<Histogram>(&to_bytes(&damaged)).is_err());
        }
    }

    #[test]
    fn without_times_all_is_zero() {
        let empty = Histogram::default();
        assert_eq!((empty.percentile(50), empty.mean()), (Nanos(0), Nanos(0)));
        assert_eq!(Histogram::of(Vec::new()), empty);
    }

    fn histogram(times: &[u64]) -> Histogram {
        Histogram::of(times.iter().copied().map(Nanos).collect())
    }

    proptest! {
        #[test]
        fn merged_percentiles_are_within_a_percent_of_the_exact_ones(
            one in proptest::collection::vec(0..10_000_000_000_u64, 0..60),
            other in proptest::collection::vec(0..1_000_000_u64, 1..60),
        ) {
            let mut merged = histogram(&one);
            merged.add(&histogram(&other));
            let mut all = [one, other].concat();
            prop_assert_eq!(&merged, &histogram(&all));
            all.sort_unstable();
            for percent in [1, 50, 90, 99, 100] {
                let exact = all[(all.len() * percent).div_ceil(100).max(1) - 1];
                let found = merged.percentile(percent as u64).0;
                prop_assert!(found.abs_diff(exact) <= exact / 100, "{found} is not {exact}");
            }
        }
    }
}
