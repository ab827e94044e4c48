//! The totals of an allocator over time, as its memory records report them. They include blocks
//! that are not in the profile, because they were allocated before the window or on threads that
//! were not recorded.

use mindprof_model::{Nanos, Profile};

use super::change::{CategoryBytes, MemoryPlace};

/// The bytes that the allocator of one place had handed out at each time.
///
/// The difference from the blocks of the profile is the memory that the profile cannot explain,
/// which the memory page shows as a separate band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatorTotals {
    before: i64,
    /// The total after each record, in time order.
    steps: Vec<(Nanos, i64)>,
}

impl AllocatorTotals {
    /// Collects the totals from the memory records of a place. `None` if the records have no totals.
    ///
    /// ```text
    /// records    +8 (total 108)    -8 (total 100)
    /// total      100 before        108               100
    /// ```
    pub fn build(profile: &Profile, place: MemoryPlace) -> Option<Self> {
        let records = profile.memory().iter();
        let records = records.filter(|record| MemoryPlace::of(profile, record) == place);
        let mut totals: Option<Self> = None;
        let mut has_totals = false;
        for record in records {
            has_totals |= record.total_allocated > 0;
            let total = record.total_allocated as i64;
            let before = total.saturating_sub(record.bytes).max(0);
            let totals = totals.get_or_insert(Self {
                before,
                steps: Vec::new(),
            });
            totals.steps.push((record.time, total));
        }
        totals.filter(|_| has_totals)
    }

    /// Returns how much more than `known` was in use after the records of `time`, or before the
    /// first record if `time` is `None`. Negative if a release was not recorded.
    pub fn beyond(&self, time: Option<Nanos>, known: &CategoryBytes) -> i64 {
        let total = time.map_or(self.before, |time| self.at(time));
        total.saturating_sub(known.iter().sum())
    }

    /// Returns the total after the last record that is not later than `time`.
    fn at(&self, time: Nanos) -> i64 {
        let count = self.steps.partition_point(|(step, _)| *step <= time);
        let last = count.checked_sub(1);
        last.map_or(self.before, |index| self.steps[index].1)
    }
}
