//! What the allocator of a process said was in use on a device, record by record: also blocks that the profile
//! never saw, because they were taken before the window or on threads that nobody recorded.

use mindprof_model::{Nanos, Profile};

use super::{CategoryBytes, MemoryPlace};

/// The allocator's own total over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatorTotals {
    before: u64,
    /// The total after each record, in time order.
    steps: Vec<(Nanos, u64)>,
}

impl AllocatorTotals {
    /// Collects what the memory records of a place say; nothing if they tell no totals.
    ///
    /// ```text
    /// records    +8 (total 108)    -8 (total 100)
    /// total      100 before        108               100
    /// ```
    pub fn build(profile: &Profile, place: MemoryPlace) -> Option<Self> {
        let records = profile.memory().iter();
        let records = records.filter(|record| MemoryPlace::of(profile, record) == place);
        let mut totals = Self::default();
        let mut is_told = false;
        for record in records {
            is_told |= record.total_allocated > 0;
            if totals.steps.is_empty() {
                let before = (record.total_allocated as i64).saturating_sub(record.bytes);
                totals.before = u64::try_from(before).unwrap_or_default();
            }
            totals.steps.push((record.time, record.total_allocated));
        }
        is_told.then_some(totals)
    }

    /// Returns how much more than `known` was in use after the records of `time`; before the first
    /// record if that is none.
    pub fn beyond(&self, time: Option<Nanos>, known: &CategoryBytes) -> i64 {
        let total = time.map_or(self.before, |time| self.at(time));
        (total as i64).saturating_sub(known.iter().sum()).max(0)
    }

    /// Returns the total after the last record that is not later than `time`.
    fn at(&self, time: Nanos) -> u64 {
        let count = self.steps.partition_point(|(step, _)| *step <= time);
        let last = count.checked_sub(1);
        last.map_or(self.before, |index| self.steps[index].1)
    }
}
