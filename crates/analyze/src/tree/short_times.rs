//! A compact column of times, one per event.

use mindprof_model::Nanos;
use rustc_hash::FxHashMap;

/// A column of times that takes 4 bytes per entry, and more for times of 4.3 seconds and above.
///
/// Self times are kept for every event, and almost all of them are short, so half of the space of
/// a [`Nanos`] is enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShortTimes {
    times: Vec<u32>,
    long: FxHashMap<u32, Nanos>,
}

/// Marks a time that does not fit and is stored in `long` instead.
const LONG: u32 = u32::MAX;

impl ShortTimes {
    pub(crate) fn with_capacity(times: usize) -> Self {
        Self {
            times: Vec::with_capacity(times),
            long: FxHashMap::default(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, time: Nanos) {
        let short = self.shortened(self.times.len(), time);
        self.times.push(short);
    }

    #[inline]
    pub(crate) fn set(&mut self, index: usize, time: Nanos) {
        // An earlier long time of this index stays in the map, unused.
        self.times[index] = self.shortened(index, time);
    }

    #[inline]
    fn shortened(&mut self, index: usize, time: Nanos) -> u32 {
        match u32::try_from(time.0) {
            Ok(short) if short != LONG => short,
            Ok(_) | Err(_) => self.set_long(index, time),
        }
    }

    #[cold]
    fn set_long(&mut self, index: usize, time: Nanos) -> u32 {
        self.long.insert(index as u32, time);
        LONG
    }

    #[inline]
    pub(crate) fn at(&self, index: usize) -> Nanos {
        match self.times[index] {
            LONG => self.long[&(index as u32)],
            short => Nanos(u64::from(short)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_times_come_out_as_they_were_set() {
        let limit = u64::from(u32::MAX);
        let given = [0, 1, limit - 1, limit, limit + 1, u64::MAX];
        let mut times = ShortTimes::with_capacity(given.len());
        for time in given {
            times.push(Nanos(time));
        }
        let found: Vec<u64> = (0..given.len()).map(|index| times.at(index).0).collect();
        assert_eq!(found, given);
        times.set(5, Nanos(3));
        times.set(0, Nanos(limit));
        assert_eq!([times.at(5), times.at(0)], [Nanos(3), Nanos(limit)]);
    }
}
